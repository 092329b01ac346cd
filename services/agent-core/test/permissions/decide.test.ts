import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  ParleySettingsSchema,
  permissionModes,
  type PermissionMode,
  type ToolRisk,
  trustLevels,
} from "@parley/contracts";
import fc from "fast-check";
import { parseCall, type ParsedCall } from "../../src/policy/parsed-call.ts";
import { decidePermission } from "../../src/policy/decide.ts";
import { assessRisk } from "../../src/policy/risk.ts";
import { compileRules, type RuleLists } from "../../src/policy/rules.ts";
import { isUntrusted, rulesFor, principalOf, isTaintSource } from "../../src/policy/principal.ts";
import type { PermissionTool } from "../../src/policy/tool-traits.ts";
import { bareExec, command, context, walledExec, write } from "./support.ts";

const risks: readonly ToolRisk[] = ["none", "low", "medium", "high", "critical"];
const ofRisk = (risk: ToolRisk, tool: Partial<PermissionTool> = {}): Promise<ParsedCall> =>
  parseCall({ name: "some_tool", readOnly: false, risk, effects: ["reads_untrusted"], ...tool }, {});

describe("mode × risk", () => {
  // One letter per risk, from none to critical: (a)llow, a(s)k, (d)eny.
  const table: Record<PermissionMode, { can: string; cannot: string }> = {
    default: { can: "aasss", cannot: "aaddd" },
    accept_edits: { can: "aaass", cannot: "aaadd" },
    plan: { can: "ddddd", cannot: "ddddd" },
    dont_ask: { can: "aaddd", cannot: "aaddd" },
    bypass: { can: "aaaaa", cannot: "aaaaa" },
    delegate: { can: "ddddd", cannot: "ddddd" },
  };
  const word: Record<string, string> = { a: "allow", s: "ask", d: "deny" };
  for (const mode of permissionModes) {
    // design: 003.20, switch.14
    test(`decides each risk in mode ${mode}, with and without a person to approve`, async () => {
      for (const [index, risk] of risks.entries()) {
        const call = await ofRisk(risk);
        for (const canAsk of [true, false]) {
          const row = canAsk ? table[mode].can : table[mode].cannot;
          const { decision, reason } = decidePermission(call, context({ mode, canAsk, allowBypass: true }));
          assert.equal(decision, word[row[index] ?? ""], `${mode} ${risk} ${canAsk}`);
          assert.notEqual(reason, "");
        }
      }
    });
  }

  test("allows only read-only tools in plan mode, with approval when risky", async () => {
    const decisions = await Promise.all(
      risks.map(
        async (risk) => decidePermission(await ofRisk(risk, { readOnly: true }), context({ mode: "plan" })).decision,
      ),
    );
    assert.deepEqual(decisions, ["allow", "allow", "ask", "ask", "ask"]);
    const question = await parseCall({ name: "ask_user", readOnly: false }, { question: "?" });
    assert.equal(decidePermission(question, context({ mode: "plan" })).decision, "allow");
  });

  // design: 003.17b
  test("ends the plan mode only with a person's approval, under any rules", async () => {
    const call = await parseCall({ name: "exit_plan_mode", readOnly: true }, { plan: "look, then write" });
    const rules = compileRules({ allow: ["*", "exit_plan_mode"] });
    const decided = decidePermission(call, context({ mode: "plan", rules }));
    assert.deepEqual([decided.decision, decided.step], ["ask", "mode"]);
    assert.equal(decidePermission(call, context({ mode: "plan", rules, canAsk: false })).decision, "deny");
    assert.equal(decidePermission(call, context()).decision, "allow");
  });

  test("allows only sub-agents and talking to people in delegate mode, under each tool name", async () => {
    for (const name of ["sessions_spawn", "delegate", "spawn", "Agent"]) {
      const call = await parseCall({ name, readOnly: false, risk: "critical" }, { prompt: "x" });
      assert.equal(decidePermission(call, context({ mode: "delegate" })).decision, "allow", name);
    }
    const read = await parseCall({ name: "read", readOnly: true }, { path: "a" });
    assert.equal(decidePermission(read, context({ mode: "delegate" })).step, "mode");
    for (const name of ["message", "ask_user"]) {
      const call = await parseCall({ name, readOnly: false }, { text: "x" });
      assert.equal(decidePermission(call, context({ mode: "delegate" })).decision, "allow", name);
    }
  });
});

describe("the risk of a call", () => {
  const riskOf = async (tool: PermissionTool, input: unknown): Promise<ToolRisk> =>
    assessRisk(await parseCall(tool, input), ["telegram:42"]).risk;
  const named = (name: string, more: Partial<PermissionTool> = {}): PermissionTool => ({
    name,
    readOnly: false,
    ...more,
  });

  // design: 003.20
  test("is low for calls within the sandbox and the workspace", async () => {
    assert.equal(await riskOf(walledExec, { command: "make" }), "low");
    assert.equal(
      await riskOf({ ...walledExec, risk: "high", effects: ["executes", "writes_files"] }, { command: "make" }),
      "low",
    );
    assert.equal(await riskOf(write, { path: "a", content: "" }), "low");
    assert.equal(await riskOf(named("read", { readOnly: true }), { path: "a" }), "none");
    assert.equal(await riskOf(named("web_fetch", { readOnly: true }), { url: "https://example.com" }), "low");
    assert.equal(await riskOf(named("sessions_spawn"), { prompt: "x" }), "low");
  });

  // design: 003.20b
  test("is low for a command that only reads, also when contained calls ask", async () => {
    const asking = async (command: string, tool = walledExec) =>
      assessRisk(await parseCall({ ...tool, risk: "high" }, { command }), [], "ask").risk;
    for (const command of ["ls", "ls -la src | head -5", "cat a.txt && wc -l a.txt", "grep -rn 'x y' . < a.txt"]) {
      assert.equal(await asking(command), "low", command);
    }
    const others = ["ls > list.txt", "ls; rm a", "./ls", "X=1 ls", "ls $(rm a)", "find . -delete", "$P a", "ls & make"];
    for (const command of others) assert.equal(await asking(command), "high", command);
    assert.equal(await asking("ls", bareExec), "high");
  });

  test("is the tool's own within the sandbox and the workspace when contained calls ask", async () => {
    const riskWhenAsked = async (tool: PermissionTool, input: unknown) =>
      assessRisk(await parseCall(tool, input), [], "ask").risk;
    assert.equal(await riskWhenAsked(walledExec, { command: "make" }), "high");
    assert.equal(await riskWhenAsked(write, { path: "a", content: "" }), "medium");
    assert.equal(await riskWhenAsked(named("web_fetch", { readOnly: true }), { url: "https://example.com" }), "medium");
    assert.equal(await riskWhenAsked(named("sessions_spawn"), { prompt: "x" }), "medium");
    assert.equal(await riskWhenAsked(named("read", { readOnly: true }), { path: "a" }), "none");
    assert.equal(await riskWhenAsked(named("memory_write"), { content: "x" }), "low");
  });

  test("is high without a sandbox, for sending requests, other recipients and unknown tools", async () => {
    assert.equal(await riskOf(bareExec, { command: "make" }), "high");
    assert.equal(await riskOf({ ...bareExec, risk: "low", effects: ["executes"] }, { command: "make" }), "high");
    assert.equal(await riskOf(named("web_fetch"), { url: "https://example.com", method: "POST" }), "high");
    assert.equal(await riskOf(named("web_fetch"), { url: "https://example.com", body: "x" }), "high");
    assert.equal(await riskOf(named("message"), { to: "telegram:43", content: "x" }), "high");
    assert.equal(await riskOf(named("message"), { channel: "irc", chat_id: "1", content: "x" }), "high");
    assert.equal(await riskOf(named("mcp__x__y", { readOnly: true }), {}), "high");
    assert.equal(await riskOf(named("toString"), {}), "high");
    assert.equal(await riskOf(named("mcp__fs__write", { risk: "medium", effects: ["writes_files"] }), {}), "medium");
    assert.equal(await riskOf(named("exec", { contained: true, risk: "critical" }), { command: "x" }), "critical");
  });

  test("is the same for speak and message", async () => {
    const said: Partial<PermissionTool> = { risk: "low", effects: ["sends_out"] };
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          to: fc.option(fc.constantFrom("telegram:42", "telegram:43", "irc:a:#b"), { nil: undefined }),
          chat_id: fc.option(fc.constant("43"), { nil: undefined }),
        }),
        fc.constantFrom(...permissionModes),
        fc.constantFrom("owner" as const, "user" as const, "guest" as const),
        fc.boolean(),
        fc.constantFrom<RuleLists>({}, { deny: ["*(irc:*)"] }, { ask: ["*(telegram:*)"] }, { allow: ["*(irc:*)"] }),
        async (input, mode, principal, tainted, lists) => {
          const judged = await Promise.all(
            ["message", "speak"].map(async (name) => {
              const call = await parseCall(named(name, said), { ...input, text: "x" });
              const given = { mode, principal, tainted, rules: compileRules(lists), ownAddresses: ["telegram:42"] };
              return { ...assessRisk(call, ["telegram:42"]), ...decidePermission(call, context(given)) };
            }),
          );
          assert.deepEqual(judged[1], judged[0]);
        },
      ),
    );
    assert.equal(await riskOf(named("speak", said), { text: "x", to: "telegram:43" }), "high");
    assert.equal(await riskOf(named("speak", said), { text: "x" }), "none");
  });

  test("is none for answering the own conversation and listing jobs", async () => {
    assert.equal(await riskOf(named("message"), { content: "x" }), "none");
    assert.equal(await riskOf(named("message"), { to: "telegram:42", content: "x" }), "none");
    assert.equal(await riskOf(named("cron"), { action: "list" }), "none");
    assert.equal(await riskOf(named("process"), { action: "poll", id: "1" }), "none");
    assert.equal(await riskOf(named("process"), { action: "signal", id: "1" }), "high");
  });
});

describe("a turn that has read untrusted content", () => {
  const decide = async (tool: PermissionTool, input: unknown, rules = compileRules()): Promise<string> => {
    const { decision, step } = decidePermission(await parseCall(tool, input), context({ tainted: true, rules }));
    return decision === "allow" ? "allow" : `${decision} ${step}`;
  };

  test("requires approval for programs, other recipients, memory and schedules", async () => {
    assert.equal(await decide(walledExec, { command: "make" }), "ask taint");
    assert.equal(await decide({ name: "message", readOnly: false, risk: "low" }, { to: "irc:x" }), "ask taint");
    assert.equal(await decide({ name: "speak", readOnly: false, risk: "low" }, { to: "irc:x" }), "ask taint");
    assert.equal(await decide({ name: "mcp_read", readOnly: true }, { server: "a", uri: "b:c" }), "ask taint");
    assert.equal(await decide({ name: "memory_write", readOnly: false }, { path: "memory/a.md" }), "ask taint");
    assert.equal(await decide({ name: "cron", readOnly: false }, { action: "add" }), "ask taint");
    for (const path of [
      "MEMORY.md",
      "memory/x.md",
      "./SOUL.md",
      "/workspace/agents.md",
      "skills/a/SKILL.md",
      "HEARTBEAT.md",
    ]) {
      assert.equal(await decide(write, { path, content: "" }), "ask taint", path);
    }
  });

  test("may read, write files and answer without approval", async () => {
    assert.equal(await decide(write, { path: "notes/a.md", content: "" }), "allow");
    assert.equal(await decide({ name: "read", readOnly: true }, { path: "a" }), "allow");
    assert.equal(await decide({ name: "message", readOnly: false }, { content: "done" }), "allow");
    assert.equal(await decide({ name: "cron", readOnly: false }, { action: "list" }), "allow");
  });

  test("may run commands that a rule allows explicitly", async () => {
    assert.equal(
      await decide(walledExec, { command: "make test" }, compileRules({ allow: ["exec(make *)"] })),
      "allow",
    );
    assert.equal(
      await decide(walledExec, { command: "make; rm x" }, compileRules({ allow: ["exec(make *)"] })),
      "ask taint",
    );
  });

  test("has read the web, an MCP result, or input of a webhook or guest", () => {
    assert.deepEqual(
      ["web_fetch", "web_search", "mcp__a__b", "read"].map((name) => isTaintSource({ name, readOnly: true })),
      [true, true, true, false],
    );
    assert.deepEqual(trustLevels.filter(isUntrusted), ["guest", "process", "webhook"]);
  });
});

describe("guests", () => {
  const settings = { allow: ["exec"], guest_allow: ["exec(date)"], ask: [], deny: [] };

  test("need approval above risk none in every mode", async () => {
    for (const mode of ["default", "accept_edits", "bypass"] as const) {
      const guest = context({ mode, allowBypass: true, principal: "guest" });
      for (const risk of risks) {
        assert.equal(
          decidePermission(await ofRisk(risk), guest).decision,
          risk === "none" ? "allow" : "ask",
          `${mode} ${risk}`,
        );
      }
      assert.equal(decidePermission(await command("make", walledExec), { ...guest, canAsk: false }).decision, "deny");
    }
  });

  test('have only the allow rules for guests and "always" approvals of the session', async () => {
    const decide = async (line: string, session = {}): Promise<string> => {
      const rules = rulesFor("guest", settings, session);
      return decidePermission(await command(line, walledExec), context({ principal: "guest", rules })).decision;
    };
    assert.equal(await decide("make"), "ask");
    assert.equal(await decide("date"), "allow");
    assert.equal(await decide("make", { allow: ["exec(make)"] }), "allow");
    assert.equal(
      decidePermission(await command("make"), context({ rules: rulesFor("owner", settings, {}) })).decision,
      "allow",
    );
  });

  test("include webhooks and processes", () => {
    assert.deepEqual(
      trustLevels.filter((each) => principalOf(each) === "guest"),
      ["guest", "process", "webhook"],
    );
  });
});

describe("the waterfall", () => {
  test("prefers deny to ask and ask to allow across lists", async () => {
    const call = await command("git push");
    const git = ["exec(git *)"];
    const decide = (...lists: RuleLists[]): string =>
      decidePermission(call, context({ rules: compileRules(...lists) })).step;
    assert.equal(decide({ allow: git, ask: git, deny: git }), "deny");
    assert.equal(decide({ allow: git }, { deny: git }), "deny");
    assert.equal(decide({ allow: git }, { ask: git }), "ask");
    assert.equal(decide({ allow: git }), "allow");
    assert.equal(decide({}), "risk");
  });

  test("applies deny and ask rules to every form of a recipient", async () => {
    const decide = async (name: string, input: unknown, lists: RuleLists): Promise<string> => {
      const call = await parseCall({ name, readOnly: false, aliases: ["text_to_speech"] }, input);
      const { decision, step } = decidePermission(call, context({ rules: compileRules(lists) }));
      return `${decision} ${step}`;
    };
    const elsewhere = { channel: "irc", chat_id: "#a", text: "x" };
    for (const name of ["message", "speak"]) {
      assert.equal(await decide(name, { to: "irc:#a", text: "x" }, { deny: [`${name}(irc:*)`] }), "deny deny");
      assert.equal(await decide(name, elsewhere, { deny: [`${name}(irc:*)`] }), "deny deny");
      assert.equal(await decide(name, elsewhere, { ask: [`${name}(irc:*)`] }), "ask ask");
      assert.equal(await decide(name, elsewhere, { allow: [`${name}(irc:*)`] }), "ask risk");
      assert.equal(await decide(name, { text: "x" }, { deny: [`${name}(irc:*)`] }), "allow risk");
    }
    const ofAccount = { to: "irc:#a", text: "x" };
    for (const name of ["message", "speak"]) {
      assert.equal(await decide(name, ofAccount, { deny: [`${name}(irc:net:#a)`] }), "deny deny");
      assert.equal(
        await decide(name, { ...ofAccount, to: "irc:net:#b" }, { deny: [`${name}(irc:net:#a)`] }),
        "ask risk",
      );
    }
    assert.equal(await decide("speak", { to: "irc:#a" }, { deny: ["text_to_speech(irc:*)"] }), "deny deny");
    assert.equal(await decide("speak", { text: "x" }, { deny: ["text_to_speech"] }), "deny deny");
  });

  test("matches attachment tools by path and MCP resource tools by server", async () => {
    const decide = async (name: string, input: unknown, rule: string): Promise<string> => {
      const call = await parseCall({ name, readOnly: true, risk: "low", effects: [] }, input);
      return decidePermission(call, context({ rules: compileRules({ deny: [rule] }) })).step;
    };
    for (const name of ["attach", "save_attachment"]) {
      assert.equal(await decide(name, { path: "./keys/a.pem" }, `${name}(keys/**)`), "deny");
      assert.equal(await decide(name, { path: "out/a.png" }, `${name}(keys/**)`), "risk");
    }
    for (const name of ["mcp_read", "mcp_authorize"]) {
      assert.equal(await decide(name, { server: "files", uri: "a:b" }, `${name}(files)`), "deny");
      assert.equal(await decide(name, { server: "web", uri: "a:b" }, `${name}(files)`), "risk");
    }
  });

  test("denies a disabled tool under all its names, also in bypass mode", async () => {
    for (const name of ["exec", "Bash"]) {
      const decision = decidePermission(
        await command("ls"),
        context({ mode: "bypass", allowBypass: true, disabled: [name] }),
      );
      assert.deepEqual([decision.decision, decision.step, decision.hookMayAnswer], ["deny", "disabled", false]);
    }
  });

  test("denies everything in bypass mode when the settings do not allow it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...risks),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        async (risk, canAsk, readOnly, hooked) => {
          const decision = decidePermission(
            await ofRisk(risk, { readOnly }),
            context({
              mode: "bypass",
              canAsk,
              rules: compileRules({ allow: ["*"] }),
              ...(hooked ? { hook: { decision: "allow", reason: "yes" } } : {}),
            }),
          );
          assert.equal(decision.decision, "deny");
          assert.match(decision.reason, /allow_bypass = true/);
        },
      ),
    );
    const parsed = ParleySettingsSchema.safeParse({ permissions: { mode: "bypass" } });
    assert.match(parsed.error?.message ?? "", /allow_bypass/);
    assert.ok(ParleySettingsSchema.safeParse({ permissions: { mode: "bypass", allow_bypass: true } }).success);
  });

  test("rejects settings with an invalid rule and describes the problem", () => {
    const parsed = ParleySettingsSchema.safeParse({ permissions: { deny: ["exec(rm *"] } });
    assert.match(parsed.error?.message ?? "", /`exec\(rm \*` must end with the parenthesis/);
  });

  test("denies with the reason when no person can approve", async () => {
    const { decision, reason } = decidePermission(await command("make"), context({ canAsk: false }));
    assert.equal(decision, "deny");
    assert.match(reason, /Not run: no person can approve it here/);
  });
});

describe("a PermissionRequest hook", () => {
  const yes = { decision: "allow", reason: "the hook allows it" } as const;
  const no = { decision: "deny", reason: "the hook forbids it" } as const;

  // design: 003.19, switch.14
  test("may decide exactly when approval is required", async () => {
    const high = await command("make");
    const low = await command("make", walledExec);
    const may = (call: ParsedCall, changes: Parameters<typeof context>[0]): boolean =>
      decidePermission(call, context(changes)).hookMayAnswer;
    assert.equal(may(high, {}), true);
    assert.equal(may(high, { canAsk: false }), true);
    assert.equal(may(high, { mode: "dont_ask" }), true);
    assert.equal(may(low, { tainted: true }), true);
    assert.equal(may(low, {}), false);
    assert.equal(may(high, { mode: "plan" }), false);
    assert.equal(may(high, { rules: compileRules({ deny: ["exec"] }) }), false);
    assert.equal(may(high, { rules: compileRules({ allow: ["exec"] }) }), false);
  });

  test("decides for taint, ask rules, guests, and when no person can approve", async () => {
    const call = await command("make");
    for (const changes of [
      {},
      { tainted: true },
      { canAsk: false },
      { principal: "guest" },
      { rules: compileRules({ ask: ["exec"] }) },
    ] as const) {
      assert.deepEqual(decidePermission(call, context({ ...changes, hook: yes })).step, "hook");
      assert.equal(decidePermission(call, context({ ...changes, hook: yes })).decision, "allow");
      assert.equal(decidePermission(call, context({ ...changes, hook: no })).reason, no.reason);
    }
  });

  test("may change the arguments, and deny rules apply to the changed call", async () => {
    const call = await command("make");
    const changed = async (line: string): Promise<ReturnType<typeof decidePermission>> =>
      decidePermission(
        call,
        context({ hook: { ...yes, updated: await command(line) }, rules: compileRules({ deny: ["exec(rm *)"] }) }),
      );
    assert.deepEqual((await changed("make test")).updatedInput, { command: "make test" });
    const denied = await changed("rm x");
    assert.deepEqual([denied.decision, denied.step, denied.updatedInput], ["deny", "deny", undefined]);
  });
});
