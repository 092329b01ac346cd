// Workspaces and roles: the workspace of each turn, and the file and command tools of guests.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseSettings } from "@parley/chassis";
import { mainWorkspaceId, threadKey, toolCall, type TrustLevel } from "@parley/contracts";
import { parseCall } from "../../src/policy/parsed-call.ts";
import { decidePermission, type PermissionContext } from "../../src/policy/decide.ts";
import { compileRules } from "../../src/policy/rules.ts";
import { guestsHave, roleOf, workspaceOf, workspaceTools } from "../../src/policy/workspace-access.ts";

const shared = { ...parseSettings("", "test").workspace, share_with_users: true };
const apart = { ...shared, share_with_users: false };
const turnOf = (trust: TrustLevel, sessionKey: string) => ({
  sessionKey: "internal:sub:1",
  root: { turnId: "root", trust, replyTo: null, sessionKey },
});
const id = "0b5ad0a4-6a1c-4d9e-8f55-2f1f8f2f0a11";

test("gives the owner, their jobs and heartbeats the main workspace", () => {
  for (const trust of ["owner", "cron", "heartbeat"] as const) {
    assert.equal(workspaceOf(turnOf(trust, "telegram:main:-100"), apart), mainWorkspaceId);
  }
});

test("gives all others a workspace per role and conversation, the same after /new", () => {
  const trusts = fc.constantFrom<TrustLevel>("user", "guest", "webhook", "subagent", "process");
  const keys = fc.string({ minLength: 1 }).filter((key) => !key.includes("~"));
  fc.assert(
    fc.property(trusts, keys, trusts, keys, (trust, key, otherTrust, otherKey) => {
      const found = workspaceOf(turnOf(trust, key), apart);
      assert.notEqual(found, mainWorkspaceId);
      assert.equal(toolCall.input.shape.workspace.safeParse(found).success, true);
      assert.equal(workspaceOf(turnOf(trust, threadKey(key, id)), apart), found);
      const same = key === otherKey && roleOf(trust) === roleOf(otherTrust);
      assert.equal(workspaceOf(turnOf(otherTrust, otherKey), apart) === found, same);
    }),
  );
});

test("shares the main workspace with users but not guests when the settings enable it", () => {
  assert.equal(workspaceOf(turnOf("user", "irc:net:bob"), shared), mainWorkspaceId);
  for (const trust of ["guest", "webhook"] as const) {
    assert.notEqual(workspaceOf(turnOf(trust, "irc:net:bob"), shared), mainWorkspaceId);
  }
});

test("gives the owner the folder of the session, and other people their own workspaces as before", () => {
  assert.equal(workspaceOf(turnOf("owner", "main"), apart, "project"), "folder-project");
  for (const trust of ["user", "guest", "webhook"] as const) {
    assert.equal(
      workspaceOf(turnOf(trust, "irc:net:bob"), apart, "project"),
      workspaceOf(turnOf(trust, "irc:net:bob"), apart),
    );
  }
});

test("accepts no workspace id that could be a path", () => {
  for (const bad of ["", "..", "../main", "MAIN", "a".repeat(33), `${"a".repeat(32)}/..`, "g".repeat(32)]) {
    assert.equal(toolCall.input.shape.workspace.safeParse(bad).success, false, bad);
  }
});

test("grants guests a workspace tool only when a rule names it", () => {
  for (const name of workspaceTools) {
    for (const rules of [[], ["*"], ["?*"], [`${name}x`], [`${name.slice(0, -1)}*`]]) {
      assert.equal(guestsHave({ name }, rules), false, `${name} by ${rules.join()}`);
    }
    assert.equal(guestsHave({ name }, [name]), true);
    assert.equal(guestsHave({ name, aliases: ["other"] }, ["other"]), true);
  }
  assert.equal(guestsHave({ name: "web_fetch" }, []), true);
});

test("refuses a guest's workspace calls in every mode, even if other rules and hooks allow them", async () => {
  const tool = (name: string) => ({ name, readOnly: true, risk: "none" as const, effects: [], contained: true });
  const context = (more: Partial<PermissionContext>): PermissionContext => ({
    mode: "default",
    allowBypass: true,
    disabled: [],
    rules: { ...compileRules({ allow: ["*", ...workspaceTools] }), named: [], approved: [] },
    principal: "guest",
    tainted: false,
    canAsk: true,
    guestAllow: [],
    hook: { decision: "allow", reason: "a hook allows it" },
    ...more,
  });
  for (const name of workspaceTools) {
    const call = await parseCall(tool(name), JSON.stringify({ path: "secret/key", command: "cat key" }));
    for (const mode of ["default", "accept_edits", "dont_ask", "bypass"] as const) {
      for (const guestAllow of [[], ["*"]]) {
        const decided = decidePermission(call, context({ mode, guestAllow }));
        assert.equal(decided.decision, "deny", `${name} in ${mode}`);
        assert.equal(decided.hookMayAnswer, false);
      }
    }
  }
  const read = (path: string) => parseCall(tool("read"), JSON.stringify({ path }));
  const granted = context({ guestAllow: ["read(public/**)"] });
  assert.equal(decidePermission(await read("public/a.txt"), granted).decision, "allow");
  assert.equal(decidePermission(await read("secret/a.txt"), granted).step, "role");
});
