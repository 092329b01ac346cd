import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "@parley/contracts";

import {
  approvalsTable,
  checkpointsTable,
  compactText,
  costText,
  messageText,
  queueTable,
  rewindText,
  totalCost,
  usageTable,
} from "../src/tables/sessions.ts";
import { plain } from "../src/io/io.ts";
import { listing } from "../src/tables/format.ts";

const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 5, cacheWriteTokens: 0 };
const priced = { micros: 12_345, unpricedCalls: 0 };

test("reports an unknown price as unknown and never adds it as zero", () => {
  assert.equal(costText(priced), "$0.0123");
  assert.equal(costText({ micros: 0, unpricedCalls: 1 }), "1 call of unknown price");
  assert.equal(
    costText(totalCost([{ cost: priced }, { cost: { micros: 0, unpricedCalls: 2 } }])),
    "$0.0123 and 2 calls of unknown price",
  );
});

test("prints a row per day or model, and a total", () => {
  const text = usageTable([{ day: "2026-11-22", model: "m", calls: 3, usage, cost: priced }], plain);
  assert.match(text, /^2026-11-22 {2}m +3 +100 +20 +5 +\$0\.0123$/m);
  assert.match(text, /total \$0\.0123$/);
});

test("prevents external text from controlling the terminal or breaking a row", () => {
  const from = {
    channel: "irc",
    account: "a",
    conversation: "c",
    contact: { id: "x", name: "\u001B[2Jeve" },
    role: "user" as const,
    origin: "user" as const,
  };
  const row = {
    inboxId: "i",
    text: "one\ntwo \u001B]0;x\u0007",
    from,
    mode: "steer" as const,
    priority: 0,
    receivedAt: "",
  };
  const text = queueTable([row], true, plain);
  assert.equal(text.split("\n").length, 3);
  for (const control of ["\u0007", "\u001B"]) assert.ok(!text.includes(control));
  const approval = {
    id: "AB12",
    sessionId: "s",
    turnId: "t",
    n: 1,
    tool: "exec",
    summary: "rm \u001B[1Ax\ny",
    reason: "high risk",
    state: "pending" as const,
    always: false,
    requestedAt: "",
    expiresAt: "",
    decidedBy: null,
  };
  assert.ok(!approvalsTable([approval], plain).includes("\u001B"));
});

test("aligns columns by the width of characters on a terminal", () => {
  const columns = { NAME: (name: string) => name, END: () => "|" };
  const lines = listing(["ascii", "日本", "e\u0301t\u00E9", "👩‍💻"], columns, plain).split("\n");
  assert.deepEqual(lines, ["NAME   END", "ascii  |", "日本   |", "e\u0301t\u00E9    |", "👩‍💻     |"]);
});

test("prints a sentence when a list is empty", () => {
  assert.equal(queueTable([], false, plain), "No messages are queued.");
  assert.equal(approvalsTable([], plain), "No approvals are pending.");
  assert.equal(checkpointsTable([], plain), "No turn of this session has changed files.");
  assert.equal(usageTable([], plain), "There were no model calls in this period.");
  assert.equal(compactText({ outcome: "nothing" }), "There is nothing to compact.");
});

test("prints each file's outcome, omissions and the undo command of a rewind, or a dry run", () => {
  const report = {
    checkpointId: "c9",
    counts: { restored: 1, removed: 0, skipped: 0, failed: 1 },
    files: [{ path: "a.txt", outcome: "failed" as const, reason: "is a folder now" }],
    omitted: 1,
  };
  assert.deepEqual(rewindText(report, plain).split("\n"), [
    "Done: 1 restored, 0 removed, 0 skipped, 1 failed.",
    "failed  a.txt  (is a folder now)",
    "… and 1 more",
    "parley rewind c9 undoes it.",
  ]);
  const planned = (path: string, outcome: "restored" | "removed" | "skipped" | "failed", reason: string | null) => ({
    path,
    outcome,
    reason,
  });
  const preview = {
    checkpointId: null,
    counts: { restored: 1, removed: 1, skipped: 1, failed: 1 },
    files: [
      planned("a.txt", "failed", "is a folder now"),
      planned("b.txt", "skipped", "it is unchanged"),
      planned("c.txt", "removed", null),
      planned("d.txt", "restored", null),
    ],
    omitted: 0,
  };
  assert.deepEqual(rewindText(preview, plain).split("\n"), [
    "This would happen: 1 restored, 1 removed, 1 skipped, 1 failed.",
    "cannot be restored  a.txt  (is a folder now)",
    "will not change  b.txt  (it is unchanged)",
    "will be deleted  c.txt",
    "will be restored  d.txt",
  ]);
});

test("names the sender of a message: a person, another origin, or a note of the loop", () => {
  const message = (from?: Message["from"]): Message => ({
    seq: 1,
    role: "user",
    turnId: "t",
    parts: [{ type: "text", text: "x" }],
    model: null,
    createdAt: "2026-11-23T10:00:00.000Z",
    ...(from === undefined ? {} : { from }),
  });
  const by = (origin: "user" | "webhook") =>
    message({ channel: "hook", account: "a", conversation: "c", contact: { id: "1" }, role: "user", origin });
  const first = (each: Message) => messageText(each, plain).split(" ")[0];
  assert.deepEqual([by("user"), by("webhook"), message()].map(first), ["person", "webhook", "note"]);
});
