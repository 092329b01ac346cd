import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ParleySettingsSchema, type SessionState } from "@parley/contracts";
import { mainPolicy, policyOf, profilesOf, readerProfile } from "../../src/turn/policy.ts";

const settings = (toml: object = {}) => ParleySettingsSchema.parse(toml);
const session = (more: Partial<SessionState> = {}): SessionState => ({
  view: null,
  overrides: {},
  profile: null,
  parentId: null,
  depth: 0,
  prefixHash: null,
  ...more,
});
const child = (profile: string) => session({ profile, parentId: "parent", depth: 1 });
const profiles = (profile: object) => settings({ profiles: { worker: profile } });

describe("what a session's turns are run with", () => {
  test("the agent's settings hold where nothing else is said", () => {
    const policy = policyOf(settings({ agent: { effort: "low", system_prompt: "Be kind." } }), session());
    assert.deepEqual(
      [policy.effort, policy.systemPrompt, policy.prompt, policy.pinned],
      ["low", "Be kind.", "full", false],
    );
    assert.equal(policy.hasTool("exec"), true);
  });

  test("a profile goes before the agent, what was changed for the session before both", () => {
    const given = settings({ agent: { effort: "low" }, profiles: { worker: { effort: "high", model: "rehearsal" } } });
    assert.equal(policyOf(given, session({ profile: "worker" })).effort, "high");
    const overridden = policyOf(given, session({ profile: "worker", overrides: { effort: "max", model: "openai:x" } }));
    assert.deepEqual([overridden.effort, overridden.model, overridden.pinned], ["max", "openai:x", true]);
    assert.equal(policyOf(given, session({ overrides: { permissionMode: "plan" } })).permissionMode, "plan");
  });

  test("dollars and seconds become micros and milliseconds, 0 stays no limit", () => {
    const { limits } = policyOf(settings({ limits: { max_usd: 0.25, max_turn_seconds: 0 } }), session());
    assert.deepEqual([limits.maxMicros, limits.maxTreeMicros, limits.maxTurnMs], [250_000, 250_000, 0]);
  });

  test("a profile that is not there any more leaves the agent's own settings", () => {
    assert.equal(policyOf(settings({ agent: { effort: "low" } }), session({ profile: "gone" })).effort, "low");
  });
});

describe("which tools there are", () => {
  // design: 001.12, 003.34
  test("an empty list of tools means none, for a child and for the agent itself", () => {
    for (const each of [child("worker"), session({ profile: "worker" })]) {
      assert.equal(policyOf(profiles({ tools: [] }), each).hasTool("read"), false);
    }
  });

  test("a list of tools means those and no others", () => {
    const policy = policyOf(profiles({ tools: ["read", "message"] }), child("worker"));
    assert.deepEqual(
      ["read", "message", "write"].map((name) => policy.hasTool(name)),
      [true, true, false],
    );
  });

  test("what the deployment turns off is off, whatever a profile names", () => {
    const off = settings({ tools: { disabled: ["exec"] }, profiles: { worker: { tools: ["exec"] } } });
    assert.equal(policyOf(off, child("worker")).hasTool("exec"), false);
    const some = settings({ tools: { enabled: ["read"] }, profiles: { worker: { tools: ["*"] } } });
    assert.deepEqual(
      ["read", "exec"].map((name) => policyOf(some, child("worker")).hasTool(name)),
      [true, false],
    );
  });
});

describe("children", () => {
  test("a child whose profile names no tools has the six that only read", () => {
    for (const profile of ["reader", "worker"]) {
      const policy = policyOf(profiles({}), child(profile));
      for (const name of readerProfile.tools ?? []) assert.equal(policy.hasTool(name), true, name);
      for (const name of ["write", "exec", "message", "sessions_spawn"]) {
        assert.equal(policy.hasTool(name), false, name);
      }
    }
  });

  test("a child with all tools has no way to people unless it is named", () => {
    const all = policyOf(profiles({ tools: ["*"] }), child("worker"));
    assert.deepEqual(
      ["exec", "message", "speak", "ask_user"].map((name) => all.hasTool(name)),
      [true, false, false, false],
    );
    const named = policyOf(profiles({ tools: ["*", "message"] }), child("worker"));
    assert.equal(named.hasTool("message"), true);
  });

  test("a child speaks by its last text, in a minimal prompt, within its own iterations and the tree's budget", () => {
    const given = settings({
      output: { mode: "message_tool" },
      limits: { max_usd: 2, max_iterations: 50 },
      subagents: { max_iterations: 7 },
    });
    const policy = policyOf(given, child("reader"));
    assert.deepEqual([policy.output, policy.prompt, policy.depth], ["final_text", "minimal", 1]);
    assert.deepEqual(
      [policy.limits.maxIterations, policy.limits.maxMicros, policy.limits.maxTreeMicros],
      [7, 0, 2_000_000],
    );
    const own = settings({ profiles: { worker: { max_usd: 0.5, max_iterations: 3 } }, limits: { max_usd: 2 } });
    const { limits } = policyOf(own, child("worker"));
    assert.deepEqual([limits.maxIterations, limits.maxMicros, limits.maxTreeMicros], [3, 500_000, 2_000_000]);
  });

  test("`reader` is always there, and may be described anew", () => {
    assert.deepEqual(profilesOf(settings())["reader"], readerProfile);
    assert.equal(profilesOf(settings({ profiles: { reader: { tools: ["read"] } } }))["reader"]?.tools?.length, 1);
  });
});

test("the agent itself has what the settings say, and no profile's limits", () => {
  const policy = mainPolicy(settings({ tools: { disabled: ["exec"] }, profiles: { worker: { tools: ["read"] } } }));
  assert.deepEqual([policy.profile, policy.depth, policy.prompt], [null, 0, "full"]);
  assert.deepEqual(
    ["read", "message", "exec"].map((name) => policy.hasTool(name)),
    [true, true, false],
  );
});
