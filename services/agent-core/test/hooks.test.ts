import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hookEvents, hookRun, type HookEvent, type HookOutput, type HookPayload } from "@parley/contracts";
import fc from "fast-check";
import { hasOutputHooks, matchesHook, appliesToOutput } from "../src/hooks/matcher.ts";
import { hookPayloads, subjectOfHook, type HookEventData, type HookContext } from "../src/hooks/payloads.ts";
import { endsChain, mergeVerdicts, neutralVerdict, rewritten, type HookOutcome } from "../src/hooks/verdict.ts";

const place: HookContext = {
  sessionId: "s1",
  sessionKey: "irc:main:#test",
  turnId: "t1",
  permissionMode: "default",
  profile: null,
};
const use = { tool: "exec", callId: "c1", input: '{"command":"ls"}' };

const facts: { [E in HookEvent]: HookEventData[E] } = {
  SessionStart: { source: "startup" },
  UserPromptSubmit: { origin: "user", prompt: "hello" },
  PreToolUse: use,
  PostToolUse: { ...use, output: "a.txt" },
  PostToolUseFailure: { ...use, error: "no such command" },
  PermissionRequest: { ...use, reason: "high risk" },
  PreCompact: { trigger: "auto", promptTokens: 100_000, instructions: null },
  PostCompact: { trigger: "manual", tokensBefore: 100_000, tokensAfter: null, summary: "short" },
  Stop: { exitReason: "end_turn", lastText: "done", stopHookActive: false },
  SubagentStart: { sessionId: "s2", profile: "reader", prompt: "look", background: true },
  SubagentStop: { sessionId: "s2", profile: "reader", exitReason: "end_turn", lastText: "seen" },
  SessionEnd: { reason: "clear" },
  Notification: { type: "permission_prompt", message: "may I?" },
};

function payloadOf<E extends HookEvent>(event: E, known: HookEventData[E] = facts[event]): HookPayload {
  return hookPayloads[event](place, known);
}

describe("payloads", () => {
  // design: 003.23
  test("builds a payload for every event that its schema accepts", () => {
    assert.deepEqual(new Set(Object.keys(hookPayloads)), new Set(hookEvents));
    for (const event of hookEvents) {
      const payload = payloadOf(event);
      assert.equal(payload.hook_event_name, event);
      assert.deepEqual(hookRun.input.parse({ hook: "h", payload }), { hook: "h", payload });
      assert.notEqual(subjectOfHook(payload), "");
    }
  });

  test("passes arguments as JSON, or as text when they are not JSON", () => {
    const input = (text: string) => hookPayloads.PreToolUse(place, { ...use, input: text }).tool_input;
    assert.deepEqual(input('{"command":"ls"}'), { command: "ls" });
    assert.equal(input('{"command":'), '{"command":');
  });
});

describe("a matcher", () => {
  const on = (matcher: string | undefined, subject: string) =>
    matchesHook({ event: "PreToolUse", ...(matcher === undefined ? {} : { matcher }) }, "PreToolUse", [subject]);

  test("matches everything of its event when empty or omitted", () => {
    assert.ok(on(undefined, "exec") && on("", "exec") && on(" ", "exec") && on("*", "exec"));
    assert.ok(!matchesHook({ event: "PreToolUse" }, "PostToolUse", ["exec"]));
  });

  test("matches a whole name, a pattern, or one of several", () => {
    assert.ok(on("exec", "exec") && !on("exec", "exec2") && !on("exec", "Exec"));
    assert.ok(on("mcp__github__*", "mcp__github__issues") && !on("mcp__github__*", "mcp__gitlab__issues"));
    assert.ok(on("write|edit", "edit") && on("write | web_*", "web_fetch") && !on("write|edit", "write|edit"));
    assert.ok(on("*a*b*", "xaxbx") && !on("*ab*ab*", "xabx") && !on("aa*aa", "aaa"));
    assert.ok(!on("e.ec", "exec"), "other characters are literal");
  });

  test("agrees with the equivalent regular expression", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 8 });
    const subject = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(word, subject, (pattern, text) => {
        fc.pre(pattern !== "");
        assert.equal(on(pattern, text), new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(text));
      }),
    );
  });
});

const answered = (answer: HookOutput, name = "h"): HookOutcome => ({
  name,
  onFailure: "open",
  result: { outcome: "answered", answer },
});
const failing = (onFailure: "open" | "closed"): HookOutcome => ({
  name: "guard",
  onFailure,
  result: { outcome: "failed", reason: "it took longer than 1 s" },
});

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const anyAnswer: fc.Arbitrary<HookOutput> = fc.record({
  continue: optional(fc.boolean()),
  decision: optional(fc.constantFrom("allow", "deny", "approve", "block", "ask")),
  reason: optional(fc.string()),
  suppressOutput: optional(fc.boolean()),
  systemMessage: optional(fc.string()),
  stopReason: optional(fc.string()),
  hookSpecificOutput: optional(
    fc.record({
      updatedInput: optional(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 })),
      additionalContext: optional(fc.string()),
      updatedToolOutput: optional(fc.string()),
      permissionDecision: optional(fc.constantFrom("allow", "deny", "ask")),
    }),
  ),
});
const anyOutcome: fc.Arbitrary<HookOutcome> = fc.oneof(
  { weight: 5, arbitrary: anyAnswer.map((answer) => answered(answer)) },
  { weight: 1, arbitrary: fc.constantFrom(failing("open"), failing("closed")) },
);
const anyChain = fc.array(anyOutcome, { maxLength: 6 });

describe("a verdict", () => {
  test("is neutral without hooks", () => assert.deepEqual(mergeVerdicts([]), neutralVerdict));

  test("is final at the first stop or denial and ignores later hooks", () => {
    fc.assert(
      fc.property(anyChain, anyChain, (chain, later) => {
        const verdict = mergeVerdicts(chain);
        fc.pre(endsChain(verdict));
        assert.deepEqual(mergeVerdicts([...chain, ...later]), verdict);
        assert.ok(!endsChain(mergeVerdicts(chain.slice(0, verdict.ran - 1))), "the last hook that ran ended the chain");
      }),
    );
  });

  test("contains all contexts up to there, in order", () => {
    fc.assert(
      fc.property(anyChain, (chain) => {
        const verdict = mergeVerdicts(chain);
        assert.ok(endsChain(verdict) ? verdict.ran <= chain.length : verdict.ran === chain.length);
        const heard = chain
          .slice(0, verdict.ran)
          .map(({ result }) => (result.outcome === "answered" ? result.answer : {}));
        const said = heard.flatMap((answer) => [answer.hookSpecificOutput?.additionalContext, answer.systemMessage]);
        assert.deepEqual(
          verdict.contexts,
          said.filter((text) => text !== undefined && text.trim() !== ""),
        );
        const inputs = heard.flatMap((answer) => answer.hookSpecificOutput?.updatedInput ?? []);
        assert.equal(verdict.updatedInput, inputs.length === 0 ? null : JSON.stringify(inputs.at(-1)));
        assert.equal(
          verdict.suppressOutput,
          heard.some((answer) => answer.suppressOutput),
        );
      }),
    );
  });

  test("takes the strictest decision with the reason of its hook", () => {
    const allow = answered({ decision: "approve", reason: "harmless" });
    const ask = answered({ hookSpecificOutput: { permissionDecision: "ask", permissionDecisionReason: "is it?" } });
    const deny = answered({ decision: "block", reason: "no" });
    const summary = (chain: HookOutcome[]) => {
      const { decision, reason, ran } = mergeVerdicts(chain);
      return [decision, reason, ran];
    };
    assert.deepEqual(summary([allow]), ["allow", "harmless", 1]);
    assert.deepEqual(summary([allow, ask]), ["ask", "is it?", 2]);
    assert.deepEqual(summary([ask, allow]), ["ask", "is it?", 2]);
    assert.deepEqual(summary([allow, deny, ask]), ["deny", "no", 2]);
  });

  test("ignores a failed hook or denies with its name, depending on on_failure", () => {
    assert.deepEqual(mergeVerdicts([failing("open")]), { ...neutralVerdict, ran: 1 });
    const { decision, reason } = mergeVerdicts([failing("closed"), answered({ decision: "allow" })]);
    assert.equal(decision, "deny");
    assert.equal(reason, "The hook guard failed: it took longer than 1 s.");
  });

  test("distinguishes stop, no decision and continue", () => {
    assert.equal(mergeVerdicts([answered({})]).continue, null);
    assert.equal(mergeVerdicts([answered({ continue: true }), answered({})]).continue, true);
    const stop = mergeVerdicts([answered({ continue: true }), answered({ continue: false, stopReason: "enough" })]);
    assert.deepEqual([stop.continue, stop.stopReason], [false, "enough"]);
  });

  test("passes rewrites to the next hook", () => {
    const input = mergeVerdicts([answered({ hookSpecificOutput: { updatedInput: { command: "ls -a" } } })]);
    assert.deepEqual(rewritten(payloadOf("PreToolUse"), input), {
      ...payloadOf("PreToolUse"),
      tool_input: { command: "ls -a" },
    });
    const output = mergeVerdicts([answered({ hookSpecificOutput: { updatedToolOutput: { lines: 2 } } })]);
    assert.deepEqual(rewritten(payloadOf("PostToolUse"), output), {
      ...payloadOf("PostToolUse"),
      tool_response: '{"lines":2}',
    });
    for (const event of hookEvents) assert.deepEqual(rewritten(payloadOf(event), neutralVerdict), payloadOf(event));
  });
});

test("delays a tool's output only for hooks whose event and name match", () => {
  const hooks = [
    { event: "PreToolUse" as const, matcher: "read" },
    { event: "PostToolUseFailure" as const, matcher: "exec|web_*" },
  ];
  assert.deepEqual(
    ["read", "exec", "web_fetch"].map((tool) => appliesToOutput(hooks, [tool])),
    [false, true, true],
  );
  assert.deepEqual([hasOutputHooks(hooks), hasOutputHooks(hooks.slice(0, 1))], [true, false]);
});
