import assert from "node:assert/strict";
import { test } from "node:test";
import { Budgets } from "../../src/limits/budget.ts";

const of = (turnId: string, micros = 0) => ({
  root: { turnId, trust: "owner" as const, replyTo: null },
  treeCost: { micros, unpricedCalls: 0 },
});
const noon = Date.parse("2026-01-01T12:00:00.000Z");
const midnight = Date.parse("2026-01-02T00:00:00.000Z");

test("adds the costs of a tree of agents and separates them from other trees", () => {
  const budgets = new Budgets();
  const tree = of("a");
  for (const turn of [tree, tree, of("b")]) budgets.open(turn);
  budgets.spend(tree, 10, noon);
  budgets.spend(tree, 5, noon);
  assert.deepEqual([budgets.treeMicroUsd(tree), budgets.treeMicroUsd(of("b"))], [15, 0]);
});

test("uses the larger of the store's sum and the sum in memory for a tree", () => {
  const budgets = new Budgets();
  budgets.open(of("a", 100));
  assert.equal(budgets.treeMicroUsd(of("a")), 100);
  budgets.spend(of("a"), 50, noon);
  budgets.open(of("a", 120));
  assert.equal(budgets.treeMicroUsd(of("a")), 150);
});

test("adds the sub-agents' cost to that of the turn at the top of the tree, also a cost without a price", () => {
  const budgets = new Budgets();
  const own = { micros: 10, unpricedCalls: 0 };
  const cost = () => budgets.costWithSubagents({ ...of("a"), parent: null }, own);
  budgets.open(of("a"));
  budgets.spend(of("a"), 10, noon);
  assert.equal(cost(), undefined);
  budgets.spend(of("a"), null, noon);
  assert.deepEqual(cost(), { micros: 10, unpricedCalls: 1 });
  budgets.spend(of("a"), 5, noon);
  assert.deepEqual(cost(), { micros: 15, unpricedCalls: 1 });
  const parent = { turnId: "a", n: 1, mode: "wait" as const };
  assert.equal(budgets.costWithSubagents({ ...of("a"), parent }, own), undefined);
});

test("forgets a tree with its last turn, not earlier", () => {
  const budgets = new Budgets();
  budgets.open(of("a"));
  budgets.open(of("a"));
  budgets.spend(of("a"), 7, noon);
  budgets.close(of("a"));
  assert.equal(budgets.treeMicroUsd(of("a")), 7);
  budgets.close(of("a"));
  assert.equal(budgets.treeMicroUsd(of("a")), 0);
});

test("sums all trees per day, resets at midnight UTC and ignores unknown prices", () => {
  const budgets = new Budgets();
  budgets.spend(of("a"), 10, noon);
  budgets.spend(of("b"), 5, noon);
  budgets.spend(of("b"), null, noon);
  assert.equal(budgets.dayMicroUsd(midnight - 1), 15);
  assert.equal(budgets.dayMicroUsd(midnight), 0);
});

test("adds only the new day's cost when the store answers after midnight", () => {
  const budgets = new Budgets();
  budgets.spend(of("a"), 10, midnight - 1);
  const rows = [
    { day: "2026-01-01", cost: { micros: 900, unpricedCalls: 0 } },
    { day: "2026-01-02", cost: { micros: 4, unpricedCalls: 0 } },
  ];
  budgets.addEarlier(rows, midnight);
  assert.equal(budgets.dayMicroUsd(midnight), 4);
});

test("counts costs outside of turns for the day", () => {
  const budgets = new Budgets();
  budgets.spendOutsideTurns(12, noon);
  budgets.spendOutsideTurns(null, noon);
  assert.equal(budgets.dayMicroUsd(noon), 12);
});
