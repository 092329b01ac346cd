// Which rows of a long conversation are rendered, and where.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nextRange, rowGapPx, RowHeights, type RowRange } from "../src/chat/row-heights.ts";
import type { Item } from "../src/chat/state.ts";

const itemsOf = (count: number): Item[] =>
  Array.from({ length: count }, (_, seq) => ({
    kind: "compacted",
    seq,
    tokensBefore: 2,
    tokensAfter: 1,
    strategy: "",
  }));

test("places each row below the measured heights of the rows before it", () => {
  const heights = new RowHeights();
  const items = itemsOf(4);
  heights.use(items);
  for (const index of items.keys()) assert.ok(heights.measure(index, 100 * (index + 1)));
  assert.ok(!heights.measure(1, 200));
  assert.equal(heights.topOf(2), 100 + 200 + 2 * rowGapPx);
  assert.equal(heights.totalPx, 1_000 + 4 * rowGapPx);
  assert.equal(heights.indexAt(0), 0);
  assert.equal(heights.indexAt(heights.topOf(3)), 3);
  assert.equal(heights.indexAt(1e6), 3);
  assert.deepEqual(heights.rangeOf(-50, 150), { from: 0, to: 2 });
});

test("keeps measured heights when earlier rows are put in front", () => {
  const heights = new RowHeights();
  const items = itemsOf(3);
  heights.use(items);
  for (const index of items.keys()) heights.measure(index, 500);
  const total = heights.totalPx;
  const earlier = itemsOf(2);
  heights.use([...earlier, ...items]);
  assert.equal(heights.totalPx - heights.topOf(2), total);
});

test("adds up again from a row whose height changed", () => {
  const heights = new RowHeights();
  heights.use(itemsOf(1_000));
  fc.assert(
    fc.property(fc.nat(999), fc.nat(3_000), (index, px) => {
      heights.measure(index, px);
      assert.equal(heights.topOf(index + 1) - heights.topOf(index), px + rowGapPx);
      const rest = heights.topOf(1_000) - heights.topOf(index + 1);
      const fresh = Array.from(
        { length: 999 - index },
        (_, at) => heights.topOf(index + 2 + at) - heights.topOf(index + 1 + at),
      );
      assert.equal(Math.round(rest), Math.round(fresh.reduce((sum, each) => sum + each, 0)));
    }),
    { numRuns: 50 },
  );
});

test("renders the rows on the screen immediately, and all around it after some frames", () => {
  const range = fc.record({ from: fc.nat(500), length: fc.nat(40) });
  const rangeOf = ({ from, length }: { from: number; length: number }): RowRange => ({ from, to: from + length });
  fc.assert(
    fc.property(range, range, fc.nat(60), (before, shown, spare) => {
      const screen = rangeOf(shown);
      const around = { from: Math.max(0, screen.from - spare), to: screen.to + spare };
      let rendered = rangeOf(before);
      for (let frame = 0; frame <= 60; frame++) {
        rendered = nextRange(rendered, screen, around);
        assert.ok(rendered.from <= screen.from && rendered.to >= screen.to);
        assert.ok(rendered.from >= around.from && rendered.to <= around.to);
      }
      assert.deepEqual(rendered, around);
    }),
  );
});
