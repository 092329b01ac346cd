// Whose commands a container isolates.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TrustLevel } from "@parley/contracts";
import { parseCall } from "../../src/policy/parsed-call.ts";
import { assessRisk } from "../../src/policy/risk.ts";
import { isContainedFor, permissionTool } from "../../src/policy/taint.ts";
import { tool } from "./support.ts";

async function riskOfCommand(trust: TrustLevel, containment: "sandbox" | "container" | "none") {
  const turn = { root: { turnId: "turn", trust, replyTo: null } };
  const exec = { local: undefined, descriptor: tool("exec", { risk: "medium", effects: ["executes"] }) };
  const call = await parseCall(permissionTool(exec, isContainedFor(turn, { containment })), '{"command":"ls"}');
  return assessRisk(call).risk;
}

test("rates a command high risk when only a container isolates it outside of the owner's turns", async () => {
  for (const trust of ["user", "guest", "webhook", "subagent"] as const) {
    assert.equal(await riskOfCommand(trust, "container"), "high", trust);
    assert.equal(await riskOfCommand(trust, "sandbox"), "low", trust);
  }
  for (const trust of ["owner", "cron", "heartbeat"] as const)
    assert.equal(await riskOfCommand(trust, "container"), "low", trust);
  for (const trust of ["owner", "user", "guest"] as const)
    assert.equal(await riskOfCommand(trust, "none"), "high", trust);
});
