// docs/permissions.md, and its guarantees for every tool of every service, for any settings.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { permissionModes, type TrustLevel } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { columns, outcome, sampleCalls, settingsByName, withTables } from "../infra/docs/permissions-table.ts";
import { parseCall } from "../services/agent-core/src/policy/parsed-call.ts";
import { decidePermission, type PermissionContext } from "../services/agent-core/src/policy/decide.ts";
import { assessRisk } from "../services/agent-core/src/policy/risk.ts";
import { rulesFor, principalOf, type TurnGrants } from "../services/agent-core/src/policy/principal.ts";

const calls = sampleCalls();
const carrying = new Set(["executes", "sends_out", "writes_memory", "schedules"]);
const wildcards = fc.constantFrom(
  "*",
  "e*",
  "?xec",
  "w*",
  "web_*",
  "mcp__*",
  "m*",
  "*_*",
  "pro?ess",
  "c*",
  "s*",
  "Ba*",
);
const named = fc.constantFrom("exec", "Bash", "write", "web_fetch", "web_search", "message", "cron", "exec(make *)");
const rules = fc.array(fc.oneof(wildcards, named), { maxLength: 4 });

interface Given {
  allow?: string[];
  guestAllow?: string[];
  session?: { allow?: string[]; allowTainted?: string[] };
  mode?: PermissionContext["mode"];
  grants?: TurnGrants;
}

/** The decision about a call in a tainted turn of this trust level. */
async function decide(
  call: (typeof calls)[number],
  trust: TrustLevel,
  given: Given,
): Promise<"allow" | "ask" | "deny"> {
  const { allow = [], guestAllow = [], session = {}, mode = "default", grants } = given;
  const principal = principalOf(trust);
  const settings = { allow, guest_allow: guestAllow, ask: [], deny: [] };
  return decidePermission(await parseCall(call.tool, call.input), {
    mode,
    allowBypass: true,
    disabled: [],
    rules: rulesFor(principal, settings, session, grants ?? (trust === "webhook" ? { webhook: [] } : {})),
    principal,
    tainted: true,
    canAsk: true,
  }).decision;
}

test("docs/permissions.md contains the tables of the code", async () => {
  const page = readFileSync(new URL("../docs/permissions.md", import.meta.url), "utf8");
  assert.equal(page, await withTables(page), "stale: run npm run docs");
});

describe("for every tool of the catalogs", () => {
  test("ignores wildcards in any list when an effect carries taint", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...calls),
        fc.array(wildcards, { minLength: 1, maxLength: 4 }),
        fc.constantFrom("owner", "user", "guest", "webhook", "subagent", "cron"),
        fc.constantFrom(...permissionModes.filter((mode) => mode !== "bypass")),
        async (call, allow, trust, mode) => {
          const { effects } = assessRisk(await parseCall(call.tool, call.input));
          fc.pre(effects.some((effect) => carrying.has(effect)));
          const given = { allow, guestAllow: allow, session: { allow }, mode };
          assert.notEqual(await decide(call, trust, given), "allow", call.label);
        },
      ),
      { numRuns: propertyRuns(1_000) },
    );
  });

  test("applies a rule to a tainted call when it names the tool or its alias", async () => {
    for (const call of calls) {
      for (const name of [call.tool.name, ...(call.tool.aliases ?? [])])
        assert.equal(await decide(call, "owner", { allow: [name] }), "allow", `${call.label} by ${name}`);
    }
  });

  test('ignores rules of "always" for tainted calls unless they were approved in a tainted turn', async () => {
    for (const call of calls) {
      const { effects } = assessRisk(await parseCall(call.tool, call.input));
      if (!effects.some((effect) => carrying.has(effect))) continue;
      const { name } = call.tool;
      assert.notEqual(await decide(call, "owner", { session: { allow: [name] } }), "allow", call.label);
      assert.equal(await decide(call, "owner", { session: { allowTainted: [name] } }), "allow", call.label);
    }
  });

  test("gives a webhook no more rights than a guest unless its own rule names the tool", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...calls),
        fc.record({ allow: rules, guestAllow: rules, session: fc.record({ allow: rules, allowTainted: rules }) }),
        fc.constantFrom(...permissionModes),
        async (call, given, mode) => {
          const webhook = await decide(call, "webhook", { ...given, mode });
          // The session's own approvals do not apply either: people did not give them for a webhook.
          const guest = await decide(call, "guest", { ...given, session: {}, mode });
          if (webhook === "allow") assert.equal(guest, "allow", call.label);
        },
      ),
      { numRuns: propertyRuns(1_000) },
    );
    for (const call of calls) {
      const own = await decide(call, "webhook", { grants: { webhook: [call.tool.name] } });
      assert.equal(own, "allow", call.label);
    }
  });

  test("allows no tainted turn an effect that carries taint, under any preset", async () => {
    for (const [name, settings] of settingsByName()) {
      for (const call of calls) {
        const { effects } = assessRisk(await parseCall(call.tool, call.input));
        if (!effects.some((effect) => carrying.has(effect))) continue;
        for (const column of columns.filter(({ tainted }) => tainted))
          assert.notEqual(await outcome(call, column, settings), "runs", `${name}: ${call.label} for ${column.title}`);
      }
    }
  });
});

describe("webhook settings", () => {
  const hook = (rule: string) => `[webhooks.a]\nsecret_env = "PARLEY_CHANNEL_A"\nallow = ["${rule}"]\n`;

  test("refuse a rule that covers several tools, and suggest a valid one", () => {
    for (const rule of ["*", "e*", "mcp__*", "mcp__github__*"])
      assert.throws(
        () => parseSettings(hook(rule), "a"),
        /covers several tools: name each tool a webhook may use in full/,
      );
    assert.throws(() => parseSettings(hook("exec(git *"), "a"), /must end with the parenthesis/);
  });

  test("accept rules that name one tool", () => {
    for (const rule of ["exec(git *)", "write(notes/**)", "mcp__github__issue_comment", "web_fetch"])
      assert.deepEqual(parseSettings(hook(rule), "a").webhooks["a"]?.allow, [rule]);
  });
});
