// The times of a turn, from its rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { spansOf, type TracePart } from "../src/handlers/turns/trace.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const part = (kind: TracePart["kind"], started: number | null, ended: number | null): TracePart => ({
  kind,
  name: kind,
  state: "done",
  started_at: started === null ? null : at(started),
  ended_at: ended === null ? null : at(ended),
  n: null,
  usage: null,
  cost_micros: null,
  first_token_ms: null,
});
const seconds = (time: string | null) => (time === null ? null : new Date(time).getUTCSeconds());

test("begins a model call at the turn's start, at the commit before it, or at the end of a tool", () => {
  const parts = [part("model", null, 2), part("tool", 2, 5), part("model", null, 6), part("model", null, 9)];
  const calls = spansOf(at(0), parts).filter(({ kind }) => kind === "model");
  assert.deepEqual(
    calls.map(({ startedAt, endedAt }) => [seconds(startedAt), seconds(endedAt)]),
    [
      [0, 2],
      [5, 6],
      [6, 9],
    ],
  );
});

test("marks a tool that was settled with the next model call as inexact", () => {
  const spans = spansOf(at(0), [
    part("model", null, 2),
    part("tool", 2, 6),
    part("tool", 2, 4),
    part("model", null, 6),
  ]);
  assert.deepEqual(
    spans.filter(({ kind }) => kind === "tool").map(({ endedAt, exact }) => [seconds(endedAt), exact]),
    [
      [6, false],
      [4, true],
    ],
  );
  const last = spans.at(-1);
  assert.deepEqual([last?.kind, seconds(last?.startedAt ?? "")], ["model", 4]);
});

test("keeps parts that have not ended", () => {
  const [tool] = spansOf(at(0), [part("tool", 1, null)]);
  assert.deepEqual([seconds(tool?.startedAt ?? ""), tool?.endedAt], [1, null]);
});
