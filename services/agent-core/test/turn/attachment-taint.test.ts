import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Sender, ToolResult } from "@parley/contracts";
import type { TurnTool } from "../../src/tools/toolbox.ts";
import { taintOf, isTainted } from "../../src/policy/taint.ts";

const file = {
  type: "blob" as const,
  sha256: "0".repeat(64),
  mediaType: "application/pdf",
  name: "a.pdf",
  bytes: 1,
};
const saidBy = (role: Sender["role"], parts: Message["parts"]): Message => ({
  seq: 1,
  role: "user",
  turnId: "t",
  parts,
  model: null,
  createdAt: "",
  from: { channel: "telegram", account: "main", conversation: "1", contact: { id: "1" }, role, origin: "user" },
});
const toolbox = { find: () => undefined };
const tainted = (trust: "owner" | "user", message: Message) =>
  isTainted({ root: { turnId: "t", trust } } as Parameters<typeof isTainted>[0], taintOf([message], toolbox));

test("taints a turn with output of a background command started in a tainted turn", () => {
  const said = saidBy("owner", [{ type: "text", text: "A command in the background has ended" }]);
  const { from } = said;
  assert.ok(from !== undefined);
  const heard: Message = { ...said, from: { ...from, channel: "internal", origin: "process" } };
  assert.equal(tainted("owner", heard), false);
  assert.equal(tainted("owner", { ...heard, from: { ...from, origin: "process", tainted: true } }), true);
});

test("taints the turn when a page was read, but not when reading was refused", () => {
  const fetch = {
    descriptor: { name: "web_fetch", aliases: [], readOnly: true, risk: "medium", effects: ["reads_untrusted"] },
  } as unknown as TurnTool;
  const read = { type: "tool_result" as const, id: "1", name: "web_fetch", content: "…", isError: true };
  const reads = (part: ToolResult) =>
    isTainted(
      { root: { turnId: "t", trust: "owner" } } as Parameters<typeof isTainted>[0],
      taintOf([{ ...saidBy("owner", [part]), role: "tool" }], { find: () => fetch }),
    );
  assert.equal(reads(read), true, "a failed read may contain untrusted text");
  assert.equal(reads({ ...read, refused: true }), false);
});

test("taints the turn with files of anyone but the owner", () => {
  assert.equal(tainted("owner", saidBy("owner", [file])), false);
  assert.equal(tainted("user", saidBy("user", [file])), true);
  assert.equal(tainted("user", saidBy("user", [{ type: "text", text: "hello" }])), false);
});
