import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noUsage, type ModelsSettings, type Usage } from "@parley/contracts";
import fc from "fast-check";
import { priceTable } from "../src/model/price-table.ts";
import { costOf } from "../src/model/prices.ts";
import type { PriceList } from "../src/model/provider.ts";

const november = Date.parse("2026-11-20T12:00:00Z");
const million = 1_000_000;

interface Circumstances {
  at?: number;
  known?: ModelsSettings["known"];
  priceList?: PriceList;
}
const cost = (
  model: string,
  usage: Partial<Usage>,
  { at = november, known = {}, priceList = "official" }: Circumstances = {},
) => costOf({ model, priceList }, { ...noUsage, ...usage }, at, known);

describe("the price table", () => {
  // US dollars per million tokens: input, output, 5-minute cache write, one-hour cache write, cache read.
  const golden: Record<string, [number, number, number, number, number]> = {
    "claude-fable-5-2": [8, 40, 10, 16, 0.2],
    "claude-fable-5-1": [10, 50, 12.5, 20, 0.25],
    "claude-opus-5-5": [4, 20, 5, 8, 0.2],
    "claude-opus-5": [5, 25, 6.25, 10, 0.5],
    "claude-sonnet-5-5": [2, 10, 2.5, 4, 0.1],
    "claude-haiku-4-5": [1, 5, 1.25, 2, 0.1],
  };

  for (const [model, dollars] of Object.entries(golden)) {
    // design: 003.38
    test(`contains the prices of ${model}`, () => {
      const costs = [
        cost(model, { inputTokens: million }),
        cost(model, { outputTokens: million }),
        cost(model, { cacheWriteTokens: million }),
        cost(model, { cacheWriteTokens: million, cacheWrite1hTokens: million }),
        cost(model, { cacheReadTokens: million }),
      ];
      assert.deepEqual(
        costs,
        dollars.map((dollar) => Math.round(dollar * million)),
      );
    });
  }

  test("prices a whole call of Haiku 5.5 by its prompt size, including cached tokens", () => {
    const small = { inputTokens: 40_000, cacheReadTokens: 59_000, cacheWriteTokens: 1_000, outputTokens: 1_000 };
    assert.equal(cost("claude-haiku-5-5", small), 40_000 * 0.1 + 59_000 * 0.01 + 1_000 * 0.125 + 1_000 * 0.5);
    const large = { ...small, cacheReadTokens: 59_001 };
    assert.equal(
      cost("claude-haiku-5-5", large),
      Math.round(40_000 * 0.5 + 59_001 * 0.05 + 1_000 * 0.625 + 1_000 * 2.5),
    );
  });

  test("contains the date when the read price of Sonnet 5.5 was halved", () => {
    const read = (at: string) => cost("claude-sonnet-5-5", { cacheReadTokens: million }, { at: Date.parse(at) });
    assert.equal(read("2026-10-06T23:59:59Z"), 200_000);
    assert.equal(read("2026-10-07T00:00:00Z"), 100_000);
  });

  test("applies the one-hour price only to one-hour cache writes", () => {
    const usage = { cacheWriteTokens: 1_000, cacheWrite1hTokens: 400 };
    assert.equal(cost("claude-opus-5-5", usage), 600 * 5 + 400 * 8);
  });

  test("contains tiers in order, and no model twice on the same day", () => {
    for (const { model, tiers } of priceTable) {
      const sizes = tiers.map((tier) => tier.upToPromptTokens);
      assert.deepEqual(
        sizes,
        sizes.toSorted((a, b) => a - b),
        model,
      );
    }
    const keys = priceTable.map(({ model, from }) => `${model} ${from}`);
    assert.equal(new Set(keys).size, keys.length);
  });
});

describe("an unknown cost", () => {
  const used = { inputTokens: 10, outputTokens: 10 };

  // design: 002.31
  test("is null, never zero, for unknown models, unknown usage and times before the first price", () => {
    assert.equal(cost("claude-next-9", used), null);
    assert.equal(costOf({ model: "claude-opus-5-5", priceList: "official" }, null, november, {}), null);
    assert.equal(cost("claude-opus-5-5", used, { at: Date.parse("2020-01-01") }), null);
  });

  test("applies to any model of a self-hosted server until a price is set", () => {
    assert.equal(cost("gpt-5.4", used, { priceList: "unknown" }), null);
    const known = { "gpt-5.4": { price: { input: 0, output: 0 } } };
    assert.equal(cost("gpt-5.4", used, { priceList: "unknown", known }), 0);
  });

  test("applies to a prompt longer than the largest tier", () => {
    assert.notEqual(cost("gpt-5.4", { inputTokens: 272_000 }), null);
    assert.equal(cost("gpt-5.4", { inputTokens: 272_001 }), null);
  });
});

describe("a known cost", () => {
  test("is zero for a rehearsal", () => {
    assert.equal(cost("rehearsal", { inputTokens: million }, { priceList: "free" }), 0);
  });

  test("applies to the dated versions of a model", () => {
    assert.equal(cost("claude-haiku-4-5-20251001", { inputTokens: million }), million);
  });

  // design: 003.38
  test("prefers the settings to the table and uses their documented defaults", () => {
    const known = { "claude-opus-5-5": { price: { input: 1, output: 2 } } };
    assert.equal(cost("claude-opus-5-5", { inputTokens: 10, outputTokens: 10 }, { known }), 30);
    assert.equal(cost("claude-opus-5-5", { cacheReadTokens: 100 }, { known }), 100);
    assert.equal(cost("claude-opus-5-5", { cacheWriteTokens: 300, cacheWrite1hTokens: 100 }, { known }), 250 + 200);
  });

  test("is never negative and never decreases when usage increases", () => {
    const tokens = fc.integer({ min: 0, max: 50_000 });
    const usages = fc.record({
      inputTokens: tokens,
      outputTokens: tokens,
      cacheReadTokens: tokens,
      cacheWriteTokens: tokens,
      cacheWrite1hTokens: tokens,
    });
    fc.assert(
      fc.property(fc.constantFrom(...new Set(priceTable.map(({ model }) => model))), usages, (model, usage) => {
        const before = cost(model, usage);
        const after = cost(model, { ...usage, outputTokens: usage.outputTokens + 10 });
        assert.ok(before !== null && after !== null && before >= 0 && after >= before);
      }),
    );
  });
});
