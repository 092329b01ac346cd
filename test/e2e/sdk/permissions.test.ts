// Permission callbacks and hooks of the Claude Agent SDK: who decides about a tool call of a run.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type HookInput, type PermissionResult } from "@anthropic-ai/claude-agent-sdk";
import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { sdkClient, type SdkClient } from "./support/client.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let sdk: SdkClient;

before(async () => {
  const settings = '[permissions]\nask = ["write(secret*)"]\nallow = ["write"]\ndeny = ["write(closed*)"]\n';
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings,
    // Without isolation a command needs approval.
    env: { "tool-runner": { PARLEY_EXEC_ISOLATION: "none" } },
  });
  sdk = sdkClient(cluster);
});
after(() => cleanup[Symbol.asyncDispose]());

const file = (name: string) => join(cluster.home, "workspace", name);
const writeOf = (path: string, content = "x") => `tool: Write ${JSON.stringify({ path, content })}`;
const then = "\nthen\nsay: over";

/** The results of the tool calls of a run, as the model received them. */
function toolResults(run: Awaited<ReturnType<SdkClient["run"]>>): string {
  return JSON.stringify(run.of("user").map(({ message }) => message.content));
}

// design: 003.43, 003.45
test("runs a call when the callback allows it", async () => {
  const asked: unknown[] = [];
  const run = await sdk.run(writeOf("secret-1.txt") + then, {
    canUseTool: async (tool, input, { toolUseID }): Promise<PermissionResult> => {
      asked.push([tool, input, typeof toolUseID]);
      return { behavior: "allow", updatedInput: input };
    },
  });
  assert.deepEqual(asked, [["write", { path: "secret-1.txt", content: "x" }, "string"]]);
  assert.deepEqual(run.result.permission_denials, []);
  assert.equal(readFileSync(file("secret-1.txt"), "utf8"), "x");
  const names = run.of("assistant").flatMap(({ message }) => message.content);
  assert.deepEqual(
    names.flatMap((block) => (block.type === "tool_use" ? [block.name] : [])),
    ["write"],
  );
});

// design: 003.45
test("runs the call with the callback's arguments instead of the model's", async () => {
  const allow = (path: string) => async (): Promise<PermissionResult> => ({
    behavior: "allow",
    updatedInput: { path, content: "changed" },
  });
  await sdk.run(writeOf("secret-2.txt") + then, { canUseTool: allow("secret-2b.txt") });
  assert.equal(existsSync(file("secret-2.txt")), false);
  assert.equal(readFileSync(file("secret-2b.txt"), "utf8"), "changed");
  const closed = await sdk.run(writeOf("secret-2.txt") + then, { canUseTool: allow("closed.txt") });
  assert.match(toolResults(closed), /Not allowed with the arguments a person edited/);
  assert.equal(existsSync(file("closed.txt")), false);
});

// design: 003.45
test("tells the model why the callback denied a call", async () => {
  const run = await sdk.run(writeOf("secret-3.txt") + then, {
    canUseTool: async () => ({ behavior: "deny", message: "not on a Sunday" }),
  });
  assert.match(toolResults(run), /not on a Sunday/);
  assert.ok(run.result.subtype === "success");
  assert.deepEqual(
    run.result.permission_denials.map(({ tool_name }) => tool_name),
    ["write"],
  );
});

// design: 003.45
test("ends the turn when the callback denies with interrupt", async () => {
  const run = await sdk.run(`${writeOf("secret-4.txt")}\n${writeOf("secret-4b.txt")}${then}`, {
    canUseTool: async () => ({ behavior: "deny", message: "stop it", interrupt: true }),
  });
  assert.equal(run.result.subtype, "error_during_execution");
  assert.equal(existsSync(file("secret-4b.txt")), false);
});

test("denies the call when the callback fails or answers what cannot be applied", async () => {
  const thrown = await sdk.run(writeOf("secret-5.txt") + then, {
    canUseTool: () => Promise.reject(new Error("the window is closed")),
  });
  assert.match(toolResults(thrown), /the window is closed/);
  const updatedPermissions = [{ type: "setMode", mode: "bypassPermissions", destination: "session" }] as const;
  const wide = await sdk.run(writeOf("secret-5.txt") + then, {
    canUseTool: async (_tool, updatedInput) => ({
      behavior: "allow",
      updatedInput,
      updatedPermissions: [...updatedPermissions],
    }),
  });
  assert.match(toolResults(wide), /updatedPermissions/);
  assert.equal(existsSync(file("secret-5.txt")), false);
});

test("asks about similar calls once when the callback returns the suggestion", async () => {
  const asked: string[] = [];
  const call = 'tool: exec {"command":"rm -r nothing-here"}';
  await sdk.run(`${call}\nthen\n${call}${then}`, {
    canUseTool: async (tool, updatedInput, { suggestions = [] }) => {
      asked.push(tool);
      return { behavior: "allow", updatedInput, updatedPermissions: suggestions };
    },
  });
  assert.deepEqual(asked, ["exec"]);
});

// design: 003.7
test("denies immediately without a callback", async () => {
  const run = await sdk.run(writeOf("secret-6.txt") + then);
  assert.deepEqual(
    run.result.permission_denials.map(({ tool_name }) => tool_name),
    ["write"],
  );
  const [denied] = run.system("permission_denied");
  assert.ok(denied?.subtype === "permission_denied");
  assert.equal(denied.tool_name, "write");
  assert.ok(toolResults(run).includes(JSON.stringify(denied.message)));
  await run.untilStderr(/denied: write/);
});

/** Allows a call as the owner, through the API. */
async function decide(approvalId: string): Promise<void> {
  const headers = { authorization: `Bearer ${cluster.token}`, "content-type": "application/json" };
  const body = JSON.stringify({ decision: "allow" });
  await fetch(`${cluster.httpUrls[0]}/api/approvals/${approvalId}`, { method: "POST", headers, body });
}

const Question = z.looseObject({ subtype: z.string().optional(), request_id: z.string().optional() });

test("withdraws a question that somebody else decides", async () => {
  let aborted = false;
  const run = await sdk.run(writeOf("secret-7.txt") + then, {
    canUseTool: async (_tool, _input, { signal, requestId }) => {
      const answered = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      await decide(requestId);
      await answered;
      aborted = true;
      return { behavior: "deny", message: "too late" };
    },
  });
  assert.equal(aborted, true);
  assert.equal(readFileSync(file("secret-7.txt"), "utf8"), "x");
  assert.equal(run.result.subtype, "success");
});

test("does not ask the callback when somebody decides while a hook is called", async () => {
  const decided = Promise.withResolvers<void>();
  const asked: string[] = [];
  const run = await sdk.run(
    writeOf("secret-9.txt") + then,
    {
      hooks: { PreToolUse: [{ hooks: [() => decided.promise.then(() => ({}))] }] },
      canUseTool: async (tool, updatedInput) => {
        asked.push(tool);
        return { behavior: "allow", updatedInput };
      },
    },
    async (message) => {
      const { subtype, request_id: id } = Question.parse(message);
      if (subtype === "permission_request") await decide(id ?? "");
      if (subtype === "permission_decided") decided.resolve();
    },
  );
  assert.deepEqual(asked, []);
  assert.equal(run.failure, undefined);
  assert.equal(readFileSync(file("secret-9.txt"), "utf8"), "x");
});

// design: 003.46
test("calls PreToolUse hooks by any name of a tool, and denies what they deny", async () => {
  const seen: string[] = [];
  const run = await sdk.run(`${writeOf("free.txt")}\nthen\ntool: ls {"path":"."}${then}`, {
    hooks: {
      PreToolUse: [
        {
          matcher: "Write|Edit",
          hooks: [
            async (input) => {
              if (input.hook_event_name === "PreToolUse") seen.push(input.tool_name);
              return {
                hookSpecificOutput: {
                  hookEventName: "PreToolUse",
                  permissionDecision: "deny",
                  permissionDecisionReason: "read only today",
                },
              };
            },
          ],
        },
      ],
    },
  });
  assert.deepEqual(seen, ["write"]);
  assert.match(toolResults(run), /read only today/);
  assert.deepEqual(
    run.result.permission_denials.map(({ tool_name }) => tool_name),
    ["write"],
  );
  assert.equal(existsSync(file("free.txt")), false);
});

// design: 003.15b
test("runs a call with the arguments of a PreToolUse hook, and never what the rules deny", async () => {
  const to = (path: string) => async () => ({
    hookSpecificOutput: {
      hookEventName: "PreToolUse" as const,
      permissionDecision: "allow" as const,
      updatedInput: { path, content: "by the hook" },
    },
  });
  await sdk.run(writeOf("moved.txt") + then, { hooks: { PreToolUse: [{ hooks: [to("moved-b.txt")] }] } });
  assert.equal(readFileSync(file("moved-b.txt"), "utf8"), "by the hook");
  await sdk.run(writeOf("moved.txt") + then, { hooks: { PreToolUse: [{ hooks: [to("closed.txt")] }] } });
  assert.equal(existsSync(file("closed.txt")), false);
});

test("asks the callback where a PreToolUse hook has no opinion and the rules ask", async () => {
  const asked: string[] = [];
  await sdk.run(`${writeOf("secret-8.txt")}\nthen\n${writeOf("open.txt")}${then}`, {
    hooks: { PreToolUse: [{ hooks: [async () => ({})] }] },
    canUseTool: async (_tool, input) => {
      asked.push(String(input["path"]));
      return { behavior: "allow", updatedInput: input };
    },
  });
  assert.deepEqual(asked, ["secret-8.txt"]);
  assert.deepEqual([existsSync(file("secret-8.txt")), existsSync(file("open.txt"))], [true, true]);
});

test("calls the other hooks of the program at their events", async () => {
  const events: string[] = [];
  const record = async (input: HookInput) => {
    events.push(input.hook_event_name);
    return input.hook_event_name === "UserPromptSubmit"
      ? { hookSpecificOutput: { hookEventName: "UserPromptSubmit" as const, additionalContext: "It is raining." } }
      : {};
  };
  let rounds = 0;
  const run = await sdk.run(writeOf("hooked.txt") + then, {
    hooks: {
      SessionStart: [{ hooks: [record] }],
      UserPromptSubmit: [{ hooks: [record] }],
      PostToolUse: [{ hooks: [record] }],
      Stop: [
        {
          hooks: [
            async (input) => {
              await record(input);
              rounds += 1;
              return rounds === 1 ? { decision: "block", reason: "say: and one more" } : {};
            },
          ],
        },
      ],
    },
  });
  assert.deepEqual(events.toSorted(), [
    "PostToolUse",
    "SessionStart",
    "Stop",
    "Stop",
    "UserPromptSubmit",
    "UserPromptSubmit",
  ]);
  assert.deepEqual(
    run.results.map((each) => each.subtype === "success" && each.result),
    ["and one more"],
  );
});

test("does not send a prompt that a hook blocks, and refuses hooks it cannot call", async () => {
  const blocked = await sdk.run("say: never", {
    hooks: { UserPromptSubmit: [{ hooks: [async () => ({ decision: "block", reason: "wrong topic" })] }] },
  });
  assert.ok(blocked.result.subtype === "error_during_execution");
  assert.deepEqual(blocked.result.errors, ["wrong topic"]);
  const unexplained = await sdk.run("say: never", {
    hooks: { UserPromptSubmit: [{ hooks: [async () => ({ decision: "block" })] }] },
  });
  assert.ok(unexplained.result.subtype === "error_during_execution");
  assert.match(unexplained.result.errors.join(), /hook of the program refused/);
  const unknown = await sdk.run("say: never", { hooks: { CwdChanged: [{ hooks: [async () => ({})] }] } });
  assert.match(unknown.failure?.message ?? "", /CwdChanged cannot be called/);
});
