import assert from "node:assert/strict";
import { test } from "node:test";

import type { TraceSpan } from "@parley/contracts";

import { plain } from "../src/io/io.ts";
import { traceText } from "../src/tables/trace.ts";

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();
const span = (more: Partial<TraceSpan>): TraceSpan => ({
  kind: "tool",
  name: "exec",
  state: "done",
  startedAt: at(0),
  endedAt: at(1_000),
  exact: true,
  ...more,
});

test("shows each part at its place in the time of the turn", () => {
  const spans = [
    span({ kind: "queue", name: "", endedAt: at(100) }),
    span({ kind: "model", name: "m", startedAt: at(100), endedAt: at(2_000), inputTokens: 120, outputTokens: 7 }),
    span({ startedAt: at(2_000), endedAt: at(3_000), exact: false }),
    span({ kind: "send", name: "telegram", state: "pending", startedAt: at(3_900), endedAt: null }),
  ];
  const trace = { turnId: "t", sessionId: "s", state: "done", receivedAt: at(0), finishedAt: at(3_900), spans };
  const lines = traceText(trace, Date.parse(at(4_000)), plain).split("\n");
  assert.match(lines[0] ?? "", /^turn t of session s$/);
  assert.match(lines[1] ?? "", /, done, ended after 3\.9 s$/);
  const bars = lines.slice(3).map((line) => /│(.*)│/.exec(line)?.[1] ?? "");
  assert.ok(bars.every((bar) => bar.length === 40));
  assert.deepEqual(
    bars.map((bar) => [bar.indexOf("█"), bar.lastIndexOf("█")]),
    [
      [0, 0],
      [1, 19],
      [20, 29],
      [39, 39],
    ],
  );
  assert.match(lines[4] ?? "", /^model m .* 1\.9 s +120 → 7 tokens$/);
  assert.match(lines[5] ?? "", /≤ 1\.0 s$/);
  assert.match(lines[6] ?? "", /^send telegram .* 100 ms +pending$/);
});
