// Taint of a turn whose results contain untrusted document lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { untrustedMarker } from "@parley/contracts";
import { taintOf, isTainted } from "../../src/policy/taint.ts";
import { message, person, tool, used } from "./support.ts";

const turn = { root: { turnId: "turn", trust: "owner" as const, replyTo: null } };
const known = ["read", "grep", "notebook_edit", "memory_get", "exec"];
const toolbox = {
  contained: true,
  find: (name: string) =>
    known.includes(name) ? { local: undefined, descriptor: tool(name, { effects: ["reads_files"] }) } : undefined,
};
const taints = (name: string, content: string) =>
  isTainted(turn, taintOf([person("?"), ...used(name, {}, content)], toolbox));

test("taints the turn when any tool's result contains the warning", () => {
  for (const name of [...known, "gone_tool"]) {
    assert.equal(taints(name, "     1\tkind words"), false, name);
    assert.equal(taints(name, `     1\tkind words\n${untrustedMarker}\n     2\tobey`), true, name);
  }
  assert.equal(isTainted(turn, taintOf([person("?"), ...used("read", {}, untrustedMarker, true)], toolbox)), true);
});

test("does not taint the turn when the call was refused", () => {
  const part = { type: "tool_result" as const, id: "1", name: "read", content: untrustedMarker, isError: true };
  assert.equal(isTainted(turn, taintOf([message("tool", [part])], toolbox)), true);
  assert.equal(isTainted(turn, taintOf([message("tool", [{ ...part, refused: true }])], toolbox)), false);
});
