// A list of equally high rows that renders only those on the screen.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Rows above and below the screen. */
const spareRows = 8;

interface Props<T> {
  rows: readonly T[];
  rowPx: number;
  label: string;
  render: (row: T) => JSX.Element;
  /** Called when the end comes near; further rows may be appended. */
  nearEnd?: () => void;
}

export function VirtualList<T>({ rows, rowPx, label, render, nearEnd }: Props<T>): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const first = useSignal(0);
  const count = useSignal(30);
  const look = () => {
    const element = box.current;
    if (element === null) return;
    first.value = Math.max(0, Math.floor(element.scrollTop / rowPx) - spareRows);
    count.value = Math.ceil(element.clientHeight / rowPx) + 2 * spareRows;
    if (element.scrollTop + element.clientHeight > element.scrollHeight - 20 * rowPx) nearEnd?.();
  };
  useEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, [rows]);
  const from = Math.min(first.value, Math.max(0, rows.length - count.value));
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard
    <div class="virtual" ref={box} onScroll={look} tabIndex={0} role="region" aria-label={label}>
      <div class="virtual-space" style={{ height: `${rows.length * rowPx}px` }}>
        <div class="virtual-rows" style={{ transform: `translateY(${from * rowPx}px)` }}>
          {rows.slice(from, from + count.value).map(render)}
        </div>
      </div>
    </div>
  );
}
