// The hooks of an event as the loop uses them: agent-core selects them and merges their verdicts, a real tool-runner executes
// them, over a real bus with the permissions of a deployment.
import assert from "node:assert/strict";
import { existsSync, watch } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openChassis, parseSettings, type Chassis } from "@parley/chassis";
import { Cleanup, startTestNats, temporaryFolder, testBaseConfig } from "@parley/testing";
import { createHooks, type RunHooks } from "../../services/agent-core/src/hooks/run-hooks.ts";
import { neutralVerdict } from "../../services/agent-core/src/hooks/verdict.ts";
import { readConfig } from "../../services/tool-runner/src/config.ts";
import { start } from "../../services/tool-runner/src/service.ts";

const settings = `
[[hooks]]
event = "PreToolUse"
matcher = "write"
command = '''echo '{"hookSpecificOutput": {"updatedInput": {"path": "b"}, "additionalContext": "renamed"}}' '''

[[hooks]]
event = "PreToolUse"
matcher = "write|edit"
command = '''cat > second.json; echo '{"decision": "allow"}' '''

[[hooks]]
name = "no-writing"
event = "PreToolUse"
matcher = "w*"
command = "echo 'the disk is full' >&2; exit 2"

[[hooks]]
event = "PreToolUse"
matcher = "write"
command = "touch fourth"

[[hooks]]
name = "broken-guard"
event = "PreToolUse"
matcher = "open"
command = "exit 1"

[[hooks]]
event = "PreToolUse"
matcher = "open"
command = '''echo '{"decision": "ask"}' '''

[[hooks]]
name = "slow-guard"
event = "PreToolUse"
matcher = "closed"
command = "sleep 7401"
timeout_seconds = 0.2
on_failure = "closed"

[[hooks]]
event = "Stop"
command = "touch stop-asked; sleep 7402"

[[hooks]]
event = "PostToolUse"
command = '''echo '{"suppressOutput": true, "hookSpecificOutput": {"updatedToolOutput": "[removed]"}}' '''
`;

const cleanup = new Cleanup();
let chassis: Chassis;
let workspace: string;
/** The working folder of hooks, from the settings. */
let folder: string;
let runHooks: RunHooks;

const place = {
  sessionId: "s1",
  sessionKey: "irc:main:#test",
  turnId: "t1",
  permissionMode: "default",
  profile: null,
} as const;
const never = new AbortController().signal;

before(async () => {
  const nats = await startTestNats(cleanup);
  workspace = await temporaryFolder(cleanup);
  folder = await temporaryFolder(cleanup);
  const config = join(folder, "parley.toml");
  await writeFile(config, settings);
  const env = {
    PARLEY_CONFIG: config,
    PARLEY_WORKSPACE: workspace,
    PARLEY_EXEC_ISOLATION: "none",
    PARLEY_DRAIN_MS: "200",
  };
  const runner = await start(readConfig(env, testBaseConfig(nats, "tool-runner", env)));
  cleanup.add(() => runner.close());
  const core = testBaseConfig(nats, "agent-core", env);
  chassis = await openChassis(core);
  cleanup.add(() => chassis.bus.drain());
  runHooks = createHooks({ ...chassis, hooks: core.settings.hooks });
});
after(() => cleanup[Symbol.asyncDispose]());

const beforeTool = (tool: string, signal = never) =>
  runHooks("PreToolUse", place, { tool, callId: "c1", input: '{"path":"a"}' }, signal);

async function counted(hook: string): Promise<string | undefined> {
  const text = await chassis.metrics.registry.metrics();
  return text.split("\n").find((line) => line.startsWith(`parley_hook_runs_total{hook="${hook}"`));
}

test("returns immediately when no hook matches the event", () => {
  const facts = { source: "startup" } as const;
  assert.equal(runHooks("SessionStart", place, facts, never), neutralVerdict);
  assert.equal(beforeTool("read"), neutralVerdict);
});

// design: 003.24, switch.15
test("runs hooks in order, each with the rewritten input, until one denies", async () => {
  const verdict = await beforeTool("write");
  assert.deepEqual(verdict, {
    ...neutralVerdict,
    decision: "deny",
    reason: "the disk is full",
    updatedInput: '{"path":"b"}',
    contexts: ["renamed"],
    ran: 3,
  });
  assert.match(await readFile(join(folder, "second.json"), "utf8"), /"tool_input":\{"path":"b"\}/);
  assert.ok(!existsSync(join(folder, "fourth")), "the chain had ended");
});

// design: 003.24
test("ignores a failing hook but counts the failure", async () => {
  assert.deepEqual(await beforeTool("open"), { ...neutralVerdict, decision: "ask", ran: 2 });
  assert.match((await counted("broken-guard")) ?? "", /outcome="failed".* 1$/);
});

// design: 003.24
test("denies when a guard times out and its settings require that", async () => {
  const verdict = await beforeTool("closed");
  assert.equal(verdict.decision, "deny");
  assert.match(verdict.reason ?? "", /slow-guard failed: it took longer than 0.2 s/);
});

// design: 003.15
test("replaces a tool's output before the model receives it", async () => {
  const facts = { tool: "read", callId: "c1", input: "{}", output: "the password is 1234" };
  const verdict = await runHooks("PostToolUse", place, facts, never);
  assert.deepEqual([verdict.updatedOutput, verdict.suppressOutput], ["[removed]", true]);
});

test("contains valid settings in the examples of docs/hooks.md", async () => {
  const text = await readFile(new URL("../../docs/hooks.md", import.meta.url), "utf8");
  const examples = [...text.matchAll(/```toml\n(.*?)```/gs)].map((match) => match[1] ?? "");
  assert.ok(examples.length >= 3);
  for (const example of examples) parseSettings(example, "docs/hooks.md");
});

test("does not wait for hooks when the turn is interrupted", async () => {
  const asked = Promise.withResolvers<void>();
  const watcher = watch(folder, (_, name) => {
    if (name === "stop-asked") asked.resolve();
  });
  cleanup.add(async () => watcher.close());
  const turn = new AbortController();
  const facts = { exitReason: "end_turn", lastText: "done", stopHookActive: false } as const;
  const verdict = runHooks("Stop", place, facts, turn.signal);
  await asked.promise;
  turn.abort(new Error("the person said stop"));
  await assert.rejects(Promise.resolve(verdict), /the person said stop/);
});
