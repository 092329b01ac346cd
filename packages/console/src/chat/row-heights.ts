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
  /** Of measured and of estimated rows, so that rows keep theirs when others are put in front. */
  readonly #known = new WeakMap<Item, { px: number; isMeasured: boolean }>();
  #items: readonly Item[] = [];
  #heightsPx = new Float64Array(0);
  /** The top of each row, and at the end the height of all. */
  #topsPx = new Float64Array(1);
  /** The tops up to this row are valid. */
  #validTo = 0;

  /** The rows from now on. */
  use(items: readonly Item[]): void {
    if (items === this.#items) return;
    this.#items = items;
    this.#heightsPx = Float64Array.from(items, (item) => this.#heightOf(item).px);
    this.#topsPx = new Float64Array(items.length + 1);
    this.#validTo = 0;
  }

  /** Stores the height of the row at `index`, in CSS pixels without the gap. Returns whether it was another one. */
  measure(index: number, heightPx: number): boolean {
    const item = this.#items[index];
    if (item === undefined) return false;
    const known = this.#heightOf(item);
    if (known.isMeasured && Math.abs(known.px - heightPx) < 0.1) return false;
    known.px = heightPx;
    known.isMeasured = true;
    this.#heightsPx[index] = heightPx;
    this.#validTo = Math.min(this.#validTo, index);
    return true;
  }

  /** Whether the row at `index` has been measured. */
  isMeasured(index: number): boolean {
    const item = this.#items[index];
    return item !== undefined && this.#heightOf(item).isMeasured;
  }

  /** The height of all rows, each with its gap, in CSS pixels. */
  get totalPx(): number {
    return this.topOf(this.#items.length);
  }

  /** The top of the row at `index`; behind the last row: the height of all. */
  topOf(index: number): number {
    return this.#tops()[Math.max(0, Math.min(index, this.#items.length))] ?? 0;
  }

  /** The row at a distance from the top, in CSS pixels; the first or last one outside. */
  indexAt(px: number): number {
    const tops = this.#tops();
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

  #heightOf(item: Item): { px: number; isMeasured: boolean } {
    let known = this.#known.get(item);
    if (known === undefined) {
      known = { px: estimatedPx(item), isMeasured: false };
      this.#known.set(item, known);
    }
    return known;
  }

  /** Adds up what has changed: this runs in every frame of scrolling, over all rows of a long conversation. */
  #tops(): Float64Array {
    const heights = this.#heightsPx;
    const tops = this.#topsPx;
    for (let index = this.#validTo; index < heights.length; index++) {
      tops[index + 1] = (tops[index] ?? 0) + (heights[index] ?? 0) + rowGapPx;
    }
    this.#validTo = heights.length;
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
