import assert from "node:assert/strict";
import { test } from "node:test";
import { Budgets } from "../../src/turn/budget.ts";

const of = (turnId: string, micros = 0) => ({
  root: { turnId, trust: "owner", replyTo: null },
  treeCost: { micros, unpricedCalls: 0 },
});
const noon = Date.parse("2026-01-01T12:00:00.000Z");
const midnight = Date.parse("2026-01-02T00:00:00.000Z");

test("a tree of agents spends together, and another tree apart", () => {
  const budgets = new Budgets();
  const tree = of("a");
  for (const turn of [tree, tree, of("b")]) budgets.open(turn);
  budgets.spend(tree, 10, noon);
  budgets.spend(tree, 5, noon);
  assert.deepEqual([budgets.treeMicros(tree), budgets.treeMicros(of("b"))], [15, 0]);
});

test("what the store knows of a tree counts where memory knows less, and never takes anything back", () => {
  const budgets = new Budgets();
  budgets.open(of("a", 100));
  assert.equal(budgets.treeMicros(of("a")), 100);
  budgets.spend(of("a"), 50, noon);
  budgets.open(of("a", 120));
  assert.equal(budgets.treeMicros(of("a")), 150);
});

test("a tree is forgotten with its last turn, not before", () => {
  const budgets = new Budgets();
  budgets.open(of("a"));
  budgets.open(of("a"));
  budgets.spend(of("a"), 7, noon);
  budgets.close(of("a"));
  assert.equal(budgets.treeMicros(of("a")), 7);
  budgets.close(of("a"));
  assert.equal(budgets.treeMicros(of("a")), 0);
});

test("the day's sum holds every tree and begins anew at midnight UTC; an unknown price adds nothing", () => {
  const budgets = new Budgets();
  budgets.spend(of("a"), 10, noon);
  budgets.spend(of("b"), 5, noon);
  budgets.spend(of("b"), null, noon);
  assert.equal(budgets.dayMicros(midnight - 1), 15);
  assert.equal(budgets.dayMicros(midnight), 0);
});

test("what the store says after midnight adds the new day's cost, and nothing of the day it was asked on", () => {
  const budgets = new Budgets();
  budgets.spend(of("a"), 10, midnight - 1);
  const rows = [
    { day: "2026-01-01", cost: { micros: 900, unpricedCalls: 0 } },
    { day: "2026-01-02", cost: { micros: 4, unpricedCalls: 0 } },
  ];
  budgets.began(rows, midnight);
  assert.equal(budgets.dayMicros(midnight), 4);
});

test("what is spent outside of a turn is the day's", () => {
  const budgets = new Budgets();
  budgets.spendAlone(12, noon);
  budgets.spendAlone(null, noon);
  assert.equal(budgets.dayMicros(noon), 12);
});
