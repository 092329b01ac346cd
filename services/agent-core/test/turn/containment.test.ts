// Whose commands a container isolates.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readCall } from "../../src/permissions/call.ts";
import { assess } from "../../src/permissions/risk.ts";
import { isContainedFor, permissionTool } from "../../src/turn/trust.ts";
import { tool } from "./support.ts";

async function riskOfCommand(trust: string, containment: "sandbox" | "container" | "none") {
  const turn = { root: { turnId: "turn", trust, replyTo: null } };
  const exec = { local: undefined, descriptor: tool("exec", { risk: "medium", effects: ["executes"] }) };
  const call = await readCall(permissionTool(exec, isContainedFor(turn, { containment })), '{"command":"ls"}');
  return assess(call).risk;
}

test("rates a command high risk when only a container isolates it outside of the owner's turns", async () => {
  for (const trust of ["user", "guest", "webhook", "subagent"]) {
    assert.equal(await riskOfCommand(trust, "container"), "high", trust);
    assert.equal(await riskOfCommand(trust, "sandbox"), "low", trust);
  }
  for (const trust of ["owner", "cron", "heartbeat"])
    assert.equal(await riskOfCommand(trust, "container"), "low", trust);
  for (const trust of ["owner", "user", "guest"]) assert.equal(await riskOfCommand(trust, "none"), "high", trust);
});
