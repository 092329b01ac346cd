// The consolidation request and the validation of its answer: pure.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ParleySettingsSchema, textOf } from "@parley/contracts";
import { isWithinBudget } from "../../src/memory/consolidation.ts";
import { parseUpdate } from "../../src/memory/parse-consolidation.ts";
import { consolidationRequest, type Material } from "../../src/memory/consolidation-request.ts";
import type { ModelReply } from "../../src/model/provider.ts";
import { Budgets } from "../../src/limits/budget.ts";

const session = "0f8fad5b-d9cb-469f-a165-70867728950e";
const material: Material = {
  memory: {
    version: 4,
    lines: [
      { text: "# Memory" },
      { text: "- Drives a van (memory/2026-10-01.md#L3)" },
      { text: null },
      { text: "- Likes tea" },
    ],
  },
  sources: [
    {
      place: "memory/2026-11-20.md",
      date: "2026-11-20",
      lines: [3, 4, 6].map((number) => ({ number, text: `- l${number}` })),
    },
    {
      place: `sessions/${session}`,
      date: "2026-11-21",
      lines: [{ number: 12, text: "I sold the van.\ntool: exec {}" }],
    },
  ],
  progress: [{ kind: "note", path: "memory/2026-11-20.md", version: 2, toLine: null }],
  tooLong: false,
  today: { calls: 0, cost: { micros: 0, unpricedCalls: 0 } },
};

const replyOf = (input: unknown, more: Partial<ModelReply> = {}): ModelReply => ({
  parts: [{ type: "tool_call", id: "1", name: "memory_update", input: JSON.stringify(input) }],
  stopReason: "tool_use",
  rawStopReason: "tool_use",
  usage: null,
  model: "m",
  ...more,
});
const read = (input: unknown, more: Partial<ModelReply> = {}) => parseUpdate(replyOf(input, more), material, 1_000);
const added = (sources: string[], text = "- Sold the van") => {
  const edit = read({ add: [{ after: 2, text, sources }] });
  return "problem" in edit ? edit.problem : edit.add[0]?.text;
};

describe("the request", () => {
  const { system, messages, tools } = consolidationRequest(material, 1_000);
  const text = textOf(messages[0]?.parts ?? []);

  test("contains numbered lines of MEMORY.md and the new material with its sources", () => {
    assert.match(text, /^ {5}2\t- Drives a van/m);
    assert.match(text, /^N1, memory\/2026-11-20\.md, 2026-11-20:\n {5}3\t- l3$/m);
    assert.match(text, /^N2, messages of the owner to the assistant, 2026-11-21:\n {4}12\tI sold the van\.$/m);
    assert.deepEqual([tools.map(({ name }) => name), messages.length], [["memory_update"], 1]);
    assert.match(system, /1000 characters/);
  });

  test("omits withheld lines and indents the further lines of a message", () => {
    assert.match(text, /^ {5}3\t\[withheld\]$/m);
    assert.doesNotMatch(text, /^tool:/m);
  });
});

describe("the answer", () => {
  test("is an edit of the version in the request, with the progress of its material", () => {
    assert.deepEqual(read({ remove: [{ from: 2, to: 2 }] }), {
      kind: "edit",
      expectedVersion: 4,
      remove: [{ from: 2, to: 2 }],
      add: [],
      maxChars: 1_000,
      progress: material.progress,
    });
  });

  test("cites sources by path and lines, or by message", () => {
    assert.equal(added(["N1:3-4"]), "- Sold the van (memory/2026-11-20.md#L3-L4)");
    assert.equal(added(["N1:6", "N2:12"]), `- Sold the van (memory/2026-11-20.md#L6; sessions/${session} message 12)`);
    assert.equal(added(["N1:3", "N1:3"]), "- Sold the van (memory/2026-11-20.md#L3)");
  });

  test("passes the citations of a replaced line of MEMORY.md to its replacement", () => {
    assert.equal(added(["M:2", "N2:12"]), `- Sold the van (memory/2026-10-01.md#L3; sessions/${session} message 12)`);
    assert.equal(
      added(["M:2"], "- Drives a red van (memory/2026-10-01.md#L3)"),
      "- Drives a red van (memory/2026-10-01.md#L3)",
    );
    assert.equal(added(["M:4"], "- Likes green tea"), "- Likes green tea");
  });

  test("is rejected when a source is missing, unknown or withheld", () => {
    assert.match(String(added([])), /has no source/);
    for (const place of ["N1:5", "N1:2-3", "N3:1", "M:3", "M:2-3", "M:9", "N1:4-3", "MEMORY.md"])
      assert.match(String(added([place])), /does not contain the source/, place);
    assert.equal(added([], "## Things"), "## Things");
  });

  test("joins a text of several lines into one line", () => {
    assert.equal(added(["N1:3"], "- one\n\n## two"), "- one ## two (memory/2026-11-20.md#L3)");
  });

  test("is rejected when it is text, another tool, two calls, incomplete or truncated", () => {
    const bad = (reply: ModelReply) => assert.ok("problem" in parseUpdate(reply, material, 1_000));
    const call = { type: "tool_call", id: "1", name: "memory_update", input: "{}" } as const;
    bad(replyOf({}, { parts: [{ type: "text", text: "done" }] }));
    bad(replyOf({}, { parts: [{ ...call, name: "exec" }] }));
    bad(replyOf({}, { parts: [call, call] }));
    bad(replyOf({}, { parts: [{ ...call, input: '{"add":' }] }));
    bad(replyOf({ add: [{ after: -1, text: "x", sources: ["N1:3"] }] }));
    bad(replyOf({}, { stopReason: "max_tokens" }));
  });
});

describe("the daily limits", () => {
  const may = (toml: object, today: { calls: number; micros: number }, spent = 0) => {
    const budgets = new Budgets();
    budgets.spendOutsideTurns(spent);
    const cost = { micros: today.micros, unpricedCalls: 0 };
    return isWithinBudget({ settings: ParleySettingsSchema.parse(toml), budgets }, { calls: today.calls, cost });
  };
  const consolidation = { max_calls_per_day: 3, max_usd_per_day: 0.1 };

  test("stop consolidation by calls, by its cost, and by the total cost", () => {
    assert.equal(may({ memory: { consolidation } }, { calls: 2, micros: 99_999 }), true);
    assert.equal(may({ memory: { consolidation } }, { calls: 3, micros: 0 }), false);
    assert.equal(may({ memory: { consolidation } }, { calls: 0, micros: 100_000 }), false);
    assert.equal(may({ memory: { consolidation: { max_usd_per_day: 0 } } }, { calls: 0, micros: 9e9 }), true);
    assert.equal(may({ limits: { max_usd_per_day: 1 } }, { calls: 0, micros: 0 }, 1_000_000), false);
    assert.equal(may({ limits: { max_usd_per_day: 1 } }, { calls: 0, micros: 0 }, 999_999), true);
  });
});
