// The scrolling area of a conversation. Of a long one, only the rows near the screen are rendered. It follows the end unless the person
// has scrolled up; then the row at the top of the screen keeps its place when rows above it change.
import { useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { EmptyState } from "../parts/load.tsx";
import { runAction } from "../parts/toast.tsx";
import { Row } from "./items.tsx";
import { nextRange, RowHeights, type RowRange } from "./row-heights.ts";
import type { OpenSession } from "./session.ts";
import type { Item } from "./state.ts";

const nearEndPx = 80;
/** A shorter conversation is rendered whole, so that the browser's own search finds all of it. */
const wholeRows = 150;
/** Rendered above and below the screen, in CSS pixels. */
const aroundPx = 1_200;
/** Earlier messages are read when the first row is nearer than this, in CSS pixels. */
const readAheadPx = 2_500;
/** A selection keeps at most so many rows rendered. */
const maxSelectedRows = 500;

/** The scroll position of one conversation. It knows the DOM; `RowHeights` knows the rows. */
class Place {
  readonly heights = new RowHeights();
  box: HTMLDivElement | null = null;
  list: HTMLDivElement | null = null;
  items: readonly Item[] = [];
  range: RowRange = { from: 0, to: 0 };
  atEnd = true;
  /** The row at the top of the screen, and how far its top is below it; null: none. */
  #anchor: { item: Item; belowPx: number } | null = null;

  /** Where the list begins in the scrolled content, in CSS pixels. */
  get #listTopPx(): number {
    const { box, list } = this;
    if (box === null || list === null) return 0;
    return list.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
  }

  /** Remembers where the person looks. */
  look(): void {
    const { box, items, heights } = this;
    if (box === null) return;
    const topPx = box.scrollTop - this.#listTopPx;
    const index = heights.indexAt(topPx);
    const item = items[index];
    this.#anchor = item === undefined ? null : { item, belowPx: heights.topOf(index) - topPx };
  }

  /** The rows to render next. */
  next(): RowRange {
    const { box, items, heights, range } = this;
    const heightPx = box?.clientHeight ?? window.innerHeight;
    const listTopPx = this.#listTopPx;
    const topPx = this.atEnd || box === null ? heights.totalPx - heightPx : box.scrollTop - listTopPx;
    const screen = heights.rangeOf(topPx, topPx + heightPx);
    const around =
      items.length <= wholeRows
        ? { from: 0, to: items.length }
        : heights.rangeOf(topPx - aroundPx, topPx + heightPx + aroundPx);
    return this.#withSelection(nextRange(range, screen, around));
  }

  /** Measures the rendered rows, or only those that are new, sets the space of the others, and restores the place. */
  settle(which: "all" | "new"): void {
    const { box, list, items, heights, range } = this;
    if (box === null || list === null) return;
    for (let index = range.from; index < range.to; index++) {
      if (which === "new" && heights.isMeasured(index)) continue;
      const row = list.children[index - range.from];
      if (row !== undefined) heights.measure(index, row.getBoundingClientRect().height);
    }
    // Read before the styles change: afterwards each would cost a layout of the page.
    const listTopPx = this.#listTopPx;
    const { scrollTop } = box;
    list.style.paddingTop = `${heights.topOf(range.from)}px`;
    list.style.paddingBottom = `${heights.totalPx - heights.topOf(range.to)}px`;
    if (this.atEnd) {
      box.scrollTop = box.scrollHeight;
      return;
    }
    if (this.#anchor === null) return;
    const index = items.indexOf(this.#anchor.item);
    if (index < 0) return;
    const wantedPx = listTopPx + heights.topOf(index) - this.#anchor.belowPx;
    if (Math.abs(wantedPx - scrollTop) >= 1) box.scrollTop = wantedPx;
  }

  /** Rows of a selection stay, so that it can be copied. */
  #withSelection(range: RowRange): RowRange {
    const selection = document.getSelection();
    if (selection === null || selection.isCollapsed) return range;
    const rows = [selection.anchorNode, selection.focusNode].map((node) => this.#indexOf(node));
    const known = rows.filter((row) => row !== null);
    if (known.length === 0) return range;
    const wide = { from: Math.min(range.from, ...known), to: Math.max(range.to, ...known.map((row) => row + 1)) };
    return wide.to - wide.from > maxSelectedRows ? range : wide;
  }

  #indexOf(node: Node | null): number | null {
    const { list } = this;
    if (node === null || list === null || !list.contains(node)) return null;
    let row: Node = node;
    while (row.parentNode !== null && row.parentNode !== list) row = row.parentNode;
    const index = [...list.children].indexOf(row as Element);
    return index < 0 ? null : this.range.from + index;
  }
}

export function Transcript({ session, children }: { session: OpenSession; children: ComponentChildren }): JSX.Element {
  const place = useMemo(() => new Place(), [session]);
  const inner = useRef<HTMLDivElement>(null);
  const away = useSignal(false);
  /** Raised when other rows are to be rendered. */
  const moved = useSignal(0);
  const frame = useRef(0);

  /** Renders other rows with the next frame, until all around the screen are there. */
  const render = () => {
    if (frame.current !== 0) return;
    frame.current = requestAnimationFrame(() => {
      frame.current = 0;
      const { from, to } = place.next();
      if (from !== place.range.from || to !== place.range.to) moved.value++;
    });
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => {
      place.settle("all");
      render();
    });
    if (inner.current !== null) observer.observe(inner.current);
    if (place.box !== null) observer.observe(place.box);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, [place]);
  const scrolled = () => {
    const { box } = place;
    if (box === null) return;
    place.atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < nearEndPx;
    away.value = !place.atEnd;
    place.look();
    render();
    if (box.scrollTop < readAheadPx && session.hasOlder.peek()) void runAction(() => session.readOlder());
  };
  const toEnd = () => {
    place.atEnd = true;
    away.value = false;
    moved.value++;
  };
  return (
    <div class="scroll-frame">
      {/* oxlint-disable jsx-a11y/no-noninteractive-tabindex -- a scrolling area needs the keyboard */}
      <div
        class="scroll"
        ref={(element) => {
          place.box = element;
        }}
        onScroll={scrolled}
        tabIndex={0}
        role="log"
        aria-live={away.value ? "off" : "polite"}
        aria-label="Conversation"
      >
        {/* oxlint-enable jsx-a11y/no-noninteractive-tabindex */}
        <div class="column" ref={inner}>
          <Rows session={session} place={place} moved={moved.value} render={render} />
          {children}
        </div>
      </div>
      {away.value && (
        <button type="button" class="button to-end" onClick={toEnd}>
          ↓ Newest
        </button>
      )}
    </div>
  );
}

interface RowsProps {
  session: OpenSession;
  place: Place;
  /** Another number: other rows are to be rendered. */
  moved: number;
  render: () => void;
}

function Rows({ session, place, render }: RowsProps): JSX.Element {
  const items = useComputed(() => session.chat.value.items).value;
  // The same element again: a row that has not changed is not rendered when others come and go.
  const rowOf = useMemo(() => {
    const rows = new WeakMap<Item, JSX.Element>();
    return (item: Item): JSX.Element => {
      const row = rows.get(item) ?? <Row key={`${item.kind}${item.seq}`} session={session} item={item} />;
      rows.set(item, row);
      return row;
    };
  }, [session]);
  if (items !== place.items) {
    const first = place.items[place.range.from];
    const shift = first === undefined ? 0 : Math.max(0, items.indexOf(first) - place.range.from);
    place.range = { from: place.range.from + shift, to: place.range.to + shift };
    place.items = items;
    place.heights.use(items);
  }
  place.range = place.next();
  useLayoutEffect(() => place.settle("new"));
  useEffect(render);
  const { from, to } = place.range;
  const isEmpty =
    items.length === 0 && session.summary.value?.messageCount === 0 && session.outgoing.value.length === 0;
  return (
    <>
      {session.hasOlder.value && (
        <button type="button" class="button older" onClick={() => void runAction(() => session.readOlder())}>
          Show earlier messages
        </button>
      )}
      {isEmpty && (
        <EmptyState icon="chat" title="A new conversation">
          <p>
            Ask for something, drop a file, or type <kbd>/</kbd> for commands.
          </p>
        </EmptyState>
      )}
      <div
        class="rows"
        ref={(element) => {
          place.list = element;
        }}
      >
        {items.slice(from, to).map(rowOf)}
      </div>
    </>
  );
}
