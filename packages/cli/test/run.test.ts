import assert from "node:assert/strict";
import { test } from "node:test";

import { readAnswer, type SessionEvent, type SessionSummary } from "@parley/contracts";
import type { SdkMessage } from "@parley/projections";

import { callPlace } from "../src/chat/open.ts";
import { api } from "../src/cluster/api.ts";
import { Gateway } from "../src/cluster/gateway.ts";
import type { Target } from "../src/cluster/target.ts";
import { OptionValues } from "../src/io/options.ts";
import { workspaceFolder } from "../src/run/agent-info.ts";
import { carryOut } from "../src/run/control.ts";
import { addOutput, noVerdict, ProgramHooks, readOutput } from "../src/run/hooks.ts";
import { readAgents } from "../src/run/program-agents.ts";
import { ProgramRequests } from "../src/run/program-requests.ts";
import { readInput } from "../src/run/input.ts";
import { PermissionQuestions, readDecision } from "../src/run/permission-questions.ts";
import { afterHooks } from "../src/run/program-approval.ts";
import { overridesOf, restoredOverrides } from "../src/run/setup.ts";
import { runOptions } from "../src/run/options.ts";
import { RunStream } from "../src/run/stream.ts";
import { readAnswerSchema } from "../src/run/structured-output.ts";

const turnId = "t";
const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const cost = { micros: 0, unpricedCalls: 0 };
const init = {
  sessionId: "s",
  model: "m",
  tools: [],
  cwd: null,
  mcpServers: [],
  slashCommands: [],
  agents: [],
  skills: [],
  permissionMode: "default" as const,
  workspace: null,
  version: null,
};

function options(values: Record<string, string | true>, ...positionals: string[]) {
  return runOptions(new OptionValues(Object.entries(values)), positionals);
}

function silentHooks(): ProgramHooks {
  return new ProgramHooks({ requests: new ProgramRequests(() => undefined), note: () => undefined });
}

test("uses a new conversation unless the run continues one", () => {
  const place = (named?: string, text = "x") => callPlace("run", named, text);
  assert.notEqual(place().conversation, place().conversation);
  assert.deepEqual([place().thread, place().exclusive], ["own", true]);
  assert.deepEqual(place("nightly"), { conversation: "nightly", exclusive: true });
  assert.deepEqual(place(undefined, "/stop"), { conversation: "cli", exclusive: true });
  assert.equal(place(undefined, "/etc/hosts is a file").thread, "own");
  assert.equal(options({ conversation: "nightly" }, "x").conversation, "nightly");
  assert.deepEqual(options({ resume: "main" }, "x").session, { resume: "main" });
  assert.equal(options({ continue: true }, "x").session, "last");
  assert.equal(options({}, "-").prompt, null);
  assert.throws(() => options({ "max-turns": "many" }, "x"), /not a number of 1 or more/);
});

test("parses an input line as a message, request or answer, or explains the error", () => {
  const user = (content: unknown) => readInput(JSON.stringify({ type: "user", message: { role: "user", content } }));
  assert.deepEqual(user("hi"), { kind: "user", text: "hi", files: [], content: "hi", uuid: null });
  const blocks = [
    { type: "text", text: "a" },
    { type: "text", text: "b" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AAEC" } },
  ];
  const content = new Uint8Array(Buffer.from([0, 1, 2]));
  const files = [{ name: "image-1.png", content }];
  assert.deepEqual(user(blocks), { kind: "user", text: "a\n\nb", files, content: blocks, uuid: null });
  assert.equal(user("  ").kind, "unusable");
  assert.equal(readInput("{").kind, "wrong");
  for (const type of ["keep_alive", "control_cancel_request", "of_a_newer_program"]) {
    assert.deepEqual(readInput(JSON.stringify({ type })), { kind: "nothing" });
  }
  const answer = { request_id: "AB12", response: { behavior: "allow" } };
  assert.deepEqual(readInput(JSON.stringify({ type: "control_response", response: answer })), {
    kind: "answer",
    answer: { requestId: "AB12", failure: null, decision: { behavior: "allow" } },
  });
  // The value becomes part of a path.
  const foul = { request_id: "A always", response: { behavior: "allow" } };
  assert.equal(readInput(JSON.stringify({ type: "control_response", response: foul })).kind, "wrong");
});

const nowhere = { path: "", state: null, abandoned: false };
const nobody = new Gateway({ home: nowhere, explicitUrl: false, urls: () => [], token: () => "" });

/** A fake session; the gateway's commands change its overrides or refuse the change. */
function control(refuse = false) {
  const said: string[] = [];
  const overrides: SessionSummary["overrides"] = {};
  const session: SessionSummary = {
    sessionId: "s",
    key: "main",
    title: null,
    status: "active",
    parentId: null,
    profile: null,
    overrides,
    cost,
    treeCost: cost,
    seq: 0,
    messageCount: 0,
    usage,
    queued: 0,
    runningTurnId: null,
    parked: false,
    createdAt: "",
    updatedAt: "",
  };
  const conversation = {
    isBusy: true,
    cancel: () => void said.push("cancel"),
    say: async (text: string) => {
      said.push(text);
      const [name, value] = text.split(" ");
      if (!refuse && name === "/model" && value !== undefined) overrides.model = value;
      return { state: "command" as const, text: refuse ? "there is no such model" : "done" };
    },
  };
  return {
    said,
    ask: (request: { subtype: string; [field: string]: unknown }) =>
      carryOut(
        {
          conversation,
          session: async () => session,
          gateway: nobody,
          define: (_servers, _manifests, agents) =>
            Promise.resolve(Object.keys(readAgents(agents)).map((name) => ({ name, description: "" }))),
          addServers: () => [],
          serverNames: () => [],
          beforeCompact: async () => null,
          requireSchema: () => undefined,
          registerHooks: (hooks) => silentHooks().register(hooks),
          instruct: (text) => void said.push(text),
          forwardTexts: () => void said.push("texts"),
        },
        "r",
        request,
      ),
  };
}

test("confirms a control request only after the change, else returns the gateway's reason", async () => {
  const good = control();
  assert.deepEqual(await good.ask({ subtype: "set_model", model: "claude-x" }), {
    subtype: "success",
    request_id: "r",
    response: { model: "claude-x" },
  });
  assert.deepEqual(good.said, ["/model claude-x"]);
  const bad = await control(true).ask({ subtype: "set_model", model: "claude-x" });
  assert.deepEqual(bad, { subtype: "error", request_id: "r", error: "there is no such model" });
});

test("sends no request when a field of its path is missing", async () => {
  await assert.rejects(nobody.run(api.session), /needs the field id/);
});

test("refuses an impossible request with a reason and never sends it as a command", async () => {
  const { said, ask } = control();
  for (const [request, reason] of [
    [{ subtype: "set_model", model: "x\n/stop" }, /set_model: model/],
    [{ subtype: "set_permission_mode", mode: "yolo" }, /set_permission_mode: mode/],
    [{ subtype: "set_max_thinking_tokens", max_thinking_tokens: 1 }, /set_effort/],
    [{ subtype: "hook_callback" }, /only Parley sends/],
    [{ subtype: "initialize", hooks: { CwdChanged: [{ hookCallbackIds: ["a"] }] } }, /CwdChanged cannot be called/],
    [{ subtype: "initialize", jsonSchema: { type: "bean" } }, /outputFormat: the schema cannot be checked/],
    [{ subtype: "initialize", agents: { a: {} } }, /agents: a\.description/],
    [{ subtype: "initialize", agents: { a: { description: "a", prompt: "a", skills: [] } } }, /agents: .*skills/],
    [{ subtype: "initialize", skills: ["pdf"] }, /skills belong to the cluster/],
    [{ subtype: "mcp_set_servers", servers: {} }, /parley\.toml.*mcp_toggle/],
    [{ subtype: "mcp_toggle", server_name: "files" }, /mcp_toggle: enabled/],
    [{ subtype: "make_tea" }, /there is no control request/],
  ] as const) {
    const answer = await ask(request);
    assert.ok(answer.subtype === "error");
    assert.match(answer.error, reason);
  }
  assert.deepEqual(said, []);
  assert.equal((await ask({ subtype: "interrupt" })).subtype, "success");
  assert.deepEqual(said, ["cancel"]);
});

function message(seq: number, role: "assistant" | "tool" | "user", call?: string): SessionEvent {
  const parts =
    call === undefined
      ? [{ type: "text" as const, text: "on" }]
      : role === "assistant"
        ? [{ type: "tool_call" as const, id: call, name: "ls", input: "{}" }]
        : [{ type: "tool_result" as const, id: call, name: "ls", content: "", isError: false }];
  return { type: "message", seq, message: { seq, role, turnId, parts, model: null, createdAt: "" } };
}

function stream(maxModelCalls: number | null) {
  const told: SdkMessage[] = [];
  const tell = (each: SdkMessage) => void told.push(each);
  const run = new RunStream({ partial: false, maxModelCalls }, { message: tell, resultWithoutTurn: tell });
  return { told, run };
}

test("buffers output until the session is known, without loss", () => {
  const { told, run } = stream(null);
  run.event(message(1, "assistant"), 0);
  assert.deepEqual(told, []);
  run.begin(init);
  run.begin(init);
  assert.deepEqual(
    told.map(({ type }) => type),
    ["system", "assistant"],
  );
});

test("counts what is left of the limits after the turns that have ended", () => {
  const { run } = stream(2);
  run.begin(init);
  assert.deepEqual(run.remaining, { maxModelCalls: 2 });
  run.event(message(1, "assistant"), 0);
  const finished = { seq: 2, turnId, state: "done", exitReason: "end_turn", text: "", usage, cost } as const;
  run.event({ type: "turn.finished", ...finished }, 0);
  assert.deepEqual(run.remaining, { maxModelCalls: 1 });
  const parts = [{ type: "text" as const, text: "on" }];
  const next = { seq: 4, role: "assistant" as const, turnId: "u", parts, model: null, createdAt: "" };
  run.event({ type: "message", seq: 4, message: next }, 0);
  run.event({ type: "turn.finished", ...finished, seq: 5, turnId: "u" }, 0);
  assert.equal(run.remaining, "max_turns");
});

test("refuses an answer about a call when one of its fields cannot be honoured", () => {
  const read = (answer: object) => readDecision(answer, "call-1");
  assert.deepEqual(read({ behavior: "allow", updatedInput: { path: "b" }, toolUseID: "call-1" }), {
    decision: { decision: "allow", always: false, updatedInput: { path: "b" } },
  });
  assert.deepEqual(read({ behavior: "deny", message: "not now", interrupt: true }), {
    decision: { decision: "deny", message: "not now", interrupt: true },
  });
  for (const answer of [
    { behavior: "allow", updatedPermissions: [{ type: "setMode", mode: "bypassPermissions", destination: "session" }] },
    { behavior: "allow", updatedPermissions: [{ type: "addRules", behavior: "allow", destination: "userSettings" }] },
    { behavior: "allow", updatedInput: "rm x" },
    { behavior: "allow", always: true, updatedInput: {} },
    { behavior: "allow", toolUseID: "call-2" },
    { behavior: "allow", interrupt: true },
    { behavior: "deny", updatedInput: {} },
    { behavior: "maybe" },
    {},
    null,
  ]) {
    assert.ok("problem" in readDecision(answer, "call-1"), JSON.stringify(answer));
  }
});

test("denies the call and reports an error when the answer cannot be honoured", async () => {
  const posted: unknown[] = [];
  const gateway: Pick<Gateway, "run"> = {
    run: (route, input) => {
      posted.push(input);
      return Promise.resolve(route.output.parse({ outcome: "decided", approval: null }));
    },
  };
  const questions = new PermissionQuestions(gateway);
  const ask = (request_id: string) =>
    questions.ask({ request_id, tool_name: "write", tool_use_id: "c", description: "write: a", input: { path: "a" } });
  assert.deepEqual(ask("AB12").request.input, { path: "a" });
  const decision = { behavior: "allow", updatedPermissions: [{ type: "setMode" }] };
  const answered = await questions.answer({ requestId: "AB12", failure: null, decision });
  assert.equal(answered?.subtype, "error");
  ask("AB13");
  await questions.answer({ requestId: "AB13", failure: "the callback threw", decision: null });
  const bodies = posted.map((each) => JSON.stringify(each));
  assert.match(bodies[0] ?? "", /AB12.*"deny".*updatedPermissions/);
  assert.match(bodies[1] ?? "", /AB13.*"deny".*the callback threw/);
  const unknown = await questions.answer({ requestId: "ZZ99", failure: null, decision: { behavior: "allow" } });
  assert.equal(unknown?.subtype, "error");
  assert.equal(posted.length, 2, "an answer to no open question decides nothing");
});

test("allows similar calls when the program returns the suggestion of the question", () => {
  const updatedPermissions = [{ type: "addRules", rules: [], behavior: "allow", destination: "session" }];
  const answer = { behavior: "allow", updatedInput: { path: "a" }, updatedPermissions, decisionClassification: "x" };
  assert.deepEqual(readDecision(answer, "c", { path: "a" }), { decision: { decision: "allow", always: true } });
});

test("runs no call that a hook of the program denied, and asks where the rules require it", () => {
  const said = (specific: object) => addOutput(noVerdict, readOutput({ hookSpecificOutput: specific }));
  const deny = said({ permissionDecision: "deny", permissionDecisionReason: "no" });
  assert.deepEqual(afterHooks(deny, true, true), { decision: "deny", message: "no" });
  assert.deepEqual(afterHooks(addOutput(deny, readOutput({ decision: "approve" })), true, true), {
    decision: "deny",
    message: "no",
  });
  assert.equal(afterHooks(noVerdict, false, true), "ask");
  assert.deepEqual(afterHooks(noVerdict, true, false), { decision: "allow", always: false });
  const allow = said({ permissionDecision: "allow", updatedInput: { path: "b" } });
  assert.deepEqual(afterHooks(allow, false, false), {
    decision: "allow",
    always: false,
    updatedInput: { path: "b" },
  });
  const ended = afterHooks(addOutput(noVerdict, readOutput({ continue: false, stopReason: "enough" })), true, true);
  assert.deepEqual(ended, { decision: "deny", message: "enough", interrupt: true });
  const nobody = afterHooks(said({ permissionDecision: "ask" }), true, false);
  assert.ok(nobody !== "ask" && nobody.decision === "deny");
  assert.throws(() => readOutput({ hookSpecificOutput: { permissionDecision: "maybe" } }), /not valid/);
});

test("calls a hook for every name of a tool that its matcher matches", () => {
  const hooks = silentHooks();
  hooks.register({ PreToolUse: [{ matcher: "Bash|Edit", hookCallbackIds: ["a"] }], Stop: [] });
  assert.deepEqual(
    ["exec", "edit", "read", "mcp__x__y"].map((tool) => hooks.has("PreToolUse", tool)),
    [true, true, false, false],
  );
  assert.equal(hooks.has("Stop"), false);
  assert.throws(() => hooks.register({ PreToolUse: [{ matcher: "(", hookCallbackIds: ["a"] }] }), /regular expression/);
});

test("adds the rules of a run to those of its session, and restores them afterwards", () => {
  const before = { allow: ["ls"], model: "m" };
  const changed = overridesOf({ allow: ["read"], permissionMode: "plan" }, before);
  assert.deepEqual(changed, { permissionMode: "plan", allow: ["ls", "read"] });
  assert.deepEqual(restoredOverrides(changed, before), { permissionMode: null, allow: ["ls"] });
});

test("reads the value of an answer that matches its schema, and names what does not match", () => {
  const properties = { beans: { type: "integer" } };
  const schema = readAnswerSchema({ type: "object", properties, required: ["beans"], additionalProperties: false });
  assert.deepEqual(readAnswer(schema, ' {"beans":12}\n'), { value: { beans: 12 }, json: '{"beans":12}' });
  assert.deepEqual(readAnswer(schema, '```json\n{"beans":12}\n```'), { value: { beans: 12 }, json: '{"beans":12}' });
  assert.deepEqual(readAnswer(schema, "twelve"), { problem: "it is not valid JSON" });
  for (const answer of ['{"beans":1.5}', "{}", '{"beans":1,"peas":2}', "[]"]) {
    const read = readAnswer(schema, answer);
    assert.ok("problem" in read && read.problem.length > 5, answer);
  }
});

test("names the folder that PARLEY_WORKSPACE chose as the folder of the run", () => {
  const folderOf = (state: object | null, explicitUrl = false) => {
    const home = { path: "/home/parley", state, abandoned: false } as Target["home"];
    return workspaceFolder({ home, explicitUrl, urls: () => [], token: () => "" });
  };
  assert.equal(folderOf({ workspace: "/projects/site" }), "/projects/site");
  assert.equal(folderOf({}), "/home/parley/workspace");
  assert.deepEqual([folderOf(null), folderOf({ workspace: "/projects/site" }, true)], [null, null]);
});
