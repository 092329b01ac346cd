import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ParleySettingsSchema, type SessionState } from "@parley/contracts";
import { mainPolicy, resolvePolicy, profilesOf, readerProfile } from "../../src/policy/turn-policy.ts";

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

describe("the policy of a session", () => {
  test("uses the agent's settings by default", () => {
    const policy = resolvePolicy(settings({ agent: { effort: "low", system_prompt: "Be kind." } }), session());
    assert.deepEqual(
      [policy.effort, policy.systemPrompt, policy.prompt, policy.pinned],
      ["low", "Be kind.", "full", false],
    );
    assert.equal(policy.hasTool("exec"), true);
  });

  // design: 000.32
  test("prefers overrides of the session to the profile, and the profile to the agent", () => {
    const given = settings({ agent: { effort: "low" }, profiles: { worker: { effort: "high", model: "rehearsal" } } });
    assert.equal(resolvePolicy(given, session({ profile: "worker" })).effort, "high");
    const overridden = resolvePolicy(
      given,
      session({ profile: "worker", overrides: { effort: "max", model: "openai:x" } }),
    );
    assert.deepEqual([overridden.effort, overridden.model, overridden.pinned], ["max", "openai:x", true]);
    assert.equal(resolvePolicy(given, session({ overrides: { permissionMode: "plan" } })).permissionMode, "plan");
  });

  test("converts dollars and seconds to micro-dollars and milliseconds and keeps 0 as no limit", () => {
    const { limits } = resolvePolicy(settings({ limits: { max_usd: 0.25, max_turn_seconds: 0 } }), session());
    assert.deepEqual([limits.maxMicroUsd, limits.maxTreeMicroUsd, limits.maxTurnMs], [250_000, 250_000, 0]);
  });

  test("uses the agent's settings when the profile no longer exists", () => {
    assert.equal(resolvePolicy(settings({ agent: { effort: "low" } }), session({ profile: "gone" })).effort, "low");
  });
});

describe("the tools of a policy", () => {
  // design: 001.12, 001.12b, 003.34
  test("permits no tools when the list is empty, for a sub-agent and for the agent", () => {
    for (const each of [child("worker"), session({ profile: "worker" })]) {
      assert.equal(resolvePolicy(profiles({ tools: [] }), each).hasTool("read"), false);
    }
  });

  // design: 001.12b
  test("permits only reading when a profile lists no tools", () => {
    const policy = resolvePolicy(settings({ profiles: { worker: { system_prompt: "Work." } } }), child("worker"));
    const has = ["read", "grep", "write", "exec", "message"].filter((name) => policy.hasTool(name));
    assert.deepEqual(has, ["read", "grep"]);
  });

  test("permits a program's sub-agent at most the tools of the agent that starts it", () => {
    const toml = {
      profiles: { listed: { tools: ["read", "mcp__shop__add"] }, bare: {}, all: { tools: ["*"] } },
      agent: { tools: ["read", "exec", "message"] },
    };
    const has = (base: string | null, lists: { tools?: string[]; disallowedTools?: string[] }, ...names: string[]) => {
      const programAgent = { description: "Adds up", prompt: "Add up.", base, ...lists };
      const policy = resolvePolicy(settings(toml), { ...child("clerk"), overrides: { programAgent } });
      return names.filter((name) => policy.hasTool(name));
    };
    const names = ["read", "exec", "grep", "message", "mcp__shop__add"];
    assert.deepEqual(has(null, {}, ...names), ["read", "exec"]);
    assert.deepEqual(has(null, { tools: ["message", "grep"] }, ...names), ["message"]);
    assert.deepEqual(has("listed", { tools: ["exec", "mcp__shop__*"] }, ...names), ["mcp__shop__add"]);
    assert.deepEqual(has("bare", {}, ...names), ["read", "grep"]);
    assert.deepEqual(has("gone", { tools: ["exec", "read"] }, ...names), ["read"]);
    assert.deepEqual(has("all", { tools: ["message", "exec"] }, ...names), ["exec"]);
    assert.deepEqual(has("all", { disallowedTools: ["mcp__*", "read"] }, ...names), ["exec", "grep"]);
  });

  // design: 003.33, 004.10b
  test("excludes the tool that starts sub-agents at the maximum depth", () => {
    const worker = { profiles: { worker: { tools: ["*"] } } };
    const has = (max_depth: number, at: SessionState) =>
      resolvePolicy(settings({ ...worker, subagents: { max_depth, tool_name: "spawn" } }), at).hasTool("spawn");
    assert.deepEqual([has(1, session()), has(1, child("worker")), has(2, child("worker"))], [true, false, true]);
  });

  test("permits exactly the listed tools", () => {
    const policy = resolvePolicy(profiles({ tools: ["read", "message"] }), child("worker"));
    assert.deepEqual(
      ["read", "message", "write"].map((name) => policy.hasTool(name)),
      [true, true, false],
    );
  });

  test("gives the agent its own list, which its sub-agents do not inherit", () => {
    const given = settings({ agent: { tools: ["message", "delegate"] }, profiles: { worker: { tools: ["exec"] } } });
    const has = (of: SessionState) =>
      ["message", "sessions_spawn", "exec"].map((name) =>
        resolvePolicy(given, of).hasTool(name, name === "sessions_spawn" ? ["delegate"] : []),
      );
    assert.deepEqual(has(session()), [true, true, false]);
    assert.deepEqual(has(child("worker")), [false, false, true]);
    assert.deepEqual(has(session({ profile: "worker" })), [false, false, true]);
  });

  test("gives a profile without a list the six read-only tools, also when it runs by itself", () => {
    const policy = resolvePolicy(profiles({}), session({ profile: "worker" }));
    assert.deepEqual(
      ["read", "exec"].map((name) => policy.hasTool(name)),
      [true, false],
    );
  });

  // design: 001.12
  test("treats an alias in every list as the tool's own name", () => {
    const aliases = ["Bash", "shell"];
    for (const alias of aliases) {
      assert.equal(resolvePolicy(profiles({ tools: [alias] }), child("worker")).hasTool("exec", aliases), true);
      assert.equal(mainPolicy(settings({ agent: { tools: [alias] } })).hasTool("exec", aliases), true);
      assert.equal(mainPolicy(settings({ tools: { enabled: [alias] } })).hasTool("exec", aliases), true);
      assert.equal(mainPolicy(settings({ tools: { disabled: [alias] } })).hasTool("exec", aliases), false);
    }
  });

  // design: 001.12
  test("refuses a name that is no tool in every list, and suggests one", () => {
    for (const toml of [
      { agent: { tools: ["raed"] } },
      { profiles: { worker: { tools: ["raed"] } } },
      { tools: { enabled: ["raed"] } },
      { tools: { disabled: ["raed"] } },
    ]) {
      const { error } = ParleySettingsSchema.safeParse(toml);
      assert.match(error?.message ?? "", /there is no tool \\"raed\\"; did you mean \\"read\\"\?/);
    }
    assert.ok(ParleySettingsSchema.safeParse({ tools: { enabled: ["mcp__any__thing", "*"] } }).success);
  });

  test("disables tools that the deployment disables, even if a profile names them", () => {
    const off = settings({ tools: { disabled: ["exec"] }, profiles: { worker: { tools: ["exec"] } } });
    assert.equal(resolvePolicy(off, child("worker")).hasTool("exec"), false);
    const some = settings({ tools: { enabled: ["read"] }, profiles: { worker: { tools: ["*"] } } });
    assert.deepEqual(
      ["read", "exec"].map((name) => resolvePolicy(some, child("worker")).hasTool(name)),
      [true, false],
    );
  });
});

describe("sub-agents", () => {
  test("get the six read-only tools when their profile names none", () => {
    for (const profile of ["reader", "worker"]) {
      const policy = resolvePolicy(profiles({}), child(profile));
      for (const name of readerProfile.tools ?? []) assert.equal(policy.hasTool(name), true, name);
      for (const name of ["write", "exec", "message", "sessions_spawn"]) {
        assert.equal(policy.hasTool(name), false, name);
      }
    }
  });

  test("get no tools that reach people unless the profile names them", () => {
    const all = resolvePolicy(profiles({ tools: ["*"] }), child("worker"));
    assert.deepEqual(
      ["exec", "message", "speak", "ask_user"].map((name) => all.hasTool(name)),
      [true, false, false, false],
    );
    const named = resolvePolicy(profiles({ tools: ["*", "message"] }), child("worker"));
    assert.equal(named.hasTool("message"), true);
  });

  test("answer with their last text, use the minimal prompt and have their own iterations", () => {
    const given = settings({
      output: { mode: "message_tool" },
      limits: { max_usd: 2, max_iterations: 50 },
      subagents: { max_iterations: 7 },
    });
    const policy = resolvePolicy(given, child("reader"));
    assert.deepEqual([policy.output, policy.prompt, policy.depth], ["final_text", "minimal", 1]);
    assert.deepEqual(
      [policy.limits.maxIterations, policy.limits.maxMicroUsd, policy.limits.maxTreeMicroUsd],
      [7, 0, 2_000_000],
    );
    const own = settings({ profiles: { worker: { max_usd: 0.5, max_iterations: 3 } }, limits: { max_usd: 2 } });
    const { limits } = resolvePolicy(own, child("worker"));
    assert.deepEqual([limits.maxIterations, limits.maxMicroUsd, limits.maxTreeMicroUsd], [3, 500_000, 2_000_000]);
  });

  test("always have the profile `reader`, which settings can replace", () => {
    assert.deepEqual(profilesOf(settings())["reader"], readerProfile);
    assert.equal(profilesOf(settings({ profiles: { reader: { tools: ["read"] } } }))["reader"]?.tools?.length, 1);
  });
});

test("uses the settings and no profile's limits for the agent itself", () => {
  const policy = mainPolicy(settings({ tools: { disabled: ["exec"] }, profiles: { worker: { tools: ["read"] } } }));
  assert.deepEqual([policy.profile, policy.depth, policy.prompt], [null, 0, "full"]);
  assert.deepEqual(
    ["read", "message", "exec"].map((name) => policy.hasTool(name)),
    [true, true, false],
  );
});
