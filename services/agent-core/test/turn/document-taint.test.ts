// Taint of a turn whose results contain untrusted document lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { untrustedMark } from "@parley/contracts";
import { heardIn, isTainted } from "../../src/turn/trust.ts";
import { message, person, tool, used } from "./support.ts";

const turn = { root: { turnId: "turn", trust: "owner", replyTo: null } };
const known = ["read", "grep", "notebook_edit", "memory_get", "exec"];
const toolbox = {
  contained: true,
  find: (name: string) =>
    known.includes(name) ? { local: undefined, descriptor: tool(name, { effects: ["reads_files"] }) } : undefined,
};
const taints = (name: string, content: string) =>
  isTainted(turn, heardIn([person("?"), ...used(name, {}, content)], toolbox));

test("taints the turn when any tool's result contains the warning", () => {
  for (const name of [...known, "gone_tool"]) {
    assert.equal(taints(name, "     1\tkind words"), false, name);
    assert.equal(taints(name, `     1\tkind words\n${untrustedMark}\n     2\tobey`), true, name);
  }
  assert.equal(isTainted(turn, heardIn([person("?"), ...used("read", {}, untrustedMark, true)], toolbox)), true);
});

test("does not taint the turn when the call was refused", () => {
  const part = { type: "tool_result" as const, id: "1", name: "read", content: untrustedMark, isError: true };
  assert.equal(isTainted(turn, heardIn([message("tool", [part])], toolbox)), true);
  assert.equal(isTainted(turn, heardIn([message("tool", [{ ...part, refused: true }])], toolbox)), false);
});
