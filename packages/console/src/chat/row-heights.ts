// The heights of a transcript's rows: measured where a row has been on the screen, estimated elsewhere. Without DOM.

import type { Item } from "./state.ts";

/** The space between two rows, in CSS pixels, as in the style sheet (`.rows`). */
export const rowGapPx = 14;

const linePx = 24;
/** Characters in a line at the usual width. */
const lineCharacters = 95;
const toolPx = 46;

export interface RowRange {
  from: number;
  /** Exclusive. */
  to: number;
}

export class RowHeights {
  readonly #measured = new WeakMap<Item, number>();
  #items: readonly Item[] = [];
  /** The top of each row, and at the end the height of all; null: to be computed again. */
  #tops: Float64Array | null = null;

  /** The rows from now on. */
  use(items: readonly Item[]): void {
    if (items === this.#items) return;
    this.#items = items;
    this.#tops = null;
  }

  /** Stores the height of a row, in CSS pixels without the gap. Returns whether it was another one. */
  measure(item: Item, heightPx: number): boolean {
    if (Math.abs((this.#measured.get(item) ?? -1) - heightPx) < 0.1) return false;
    this.#measured.set(item, heightPx);
    this.#tops = null;
    return true;
  }

  /** The height of all rows, each with its gap, in CSS pixels. */
  get totalPx(): number {
    return this.#offsets().at(-1) ?? 0;
  }

  /** The top of the row at `index`; behind the last row: the height of all. */
  topOf(index: number): number {
    const tops = this.#offsets();
    return tops[Math.max(0, Math.min(index, tops.length - 1))] ?? 0;
  }

  /** The row at a distance from the top, in CSS pixels; the first or last one outside. */
  indexAt(px: number): number {
    const tops = this.#offsets();
    let low = 0;
    let high = Math.max(0, this.#items.length - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((tops[middle] ?? 0) <= px) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The rows between two distances from the top, in CSS pixels. */
  rangeOf(fromPx: number, toPx: number): RowRange {
    if (this.#items.length === 0) return { from: 0, to: 0 };
    return { from: this.indexAt(fromPx), to: this.indexAt(toPx) + 1 };
  }

  #offsets(): Float64Array {
    if (this.#tops !== null) return this.#tops;
    const tops = new Float64Array(this.#items.length + 1);
    let px = 0;
    for (const [index, item] of this.#items.entries()) {
      tops[index] = px;
      px += (this.#measured.get(item) ?? estimatedPx(item)) + rowGapPx;
    }
    tops[this.#items.length] = px;
    this.#tops = tops;
    return tops;
  }
}

/** A guess, so that the scroll bar is about right before a row has been on the screen. */
function estimatedPx(item: Item): number {
  switch (item.kind) {
    case "user":
      return 44 + linesOf(item.text) * linePx;
    case "assistant":
      return item.blocks.reduce(
        (sum, block) => sum + (block.type === "text" ? linesOf(block.text) * linePx : toolPx),
        0,
      );
    case "end":
    case "compacted":
      return 20;
  }
}

function linesOf(text: string): number {
  return Math.ceil(text.length / lineCharacters) + text.split("\n").length - 1;
}

/** The most rows that one frame adds outside of the screen, so that scrolling stays smooth. */
const addedPerFrame = 4;

/**
 * The rows to render: those on the screen, and a part of those around it, so that each frame adds only a few. Rows that are rendered
 * already stay while they are around the screen.
 */
export function nextRange(rendered: RowRange, screen: RowRange, around: RowRange): RowRange {
  const isNear = rendered.to >= screen.from && rendered.from <= screen.to;
  const kept = isNear
    ? { from: Math.max(rendered.from, around.from), to: Math.min(rendered.to, around.to) }
    : { from: screen.from, to: screen.to };
  return {
    from: Math.max(around.from, Math.min(screen.from, kept.from - addedPerFrame)),
    to: Math.min(around.to, Math.max(screen.to, kept.to + addedPerFrame)),
  };
}
