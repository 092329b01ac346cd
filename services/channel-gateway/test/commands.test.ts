// Commands and queue modes over the API, a WebSocket and a second replica, on a real store.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { checkpointRewind, noUsage, slashCommands as commands, store } from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { accessRules } from "../src/operations/access.ts";
import { runCommand } from "../src/operations/registry.ts";
import { Platform } from "./support/platform.ts";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";
import { WsReader } from "./support/watchers.ts";

let stack: GatewayStack;
let gateway: Replica;
let other: Replica;
let core: Bus;
let conversations = 0;

const settings = (toml: string) => ({ config: { settings: parseSettings(toml, "test") } });
const perConversation = '[session]\npolicy = "per_conversation"\n';

before(async () => {
  stack = await startGatewayStack();
  core = await stack.stack.bus("agent-core");
  const queued = settings(`${perConversation}[queue]\nmode = "queue"`);
  [gateway, other] = await Promise.all([stack.gateway(queued), stack.gateway(queued)]);
});
after(() => stack[Symbol.asyncDispose]());
afterEach(() => {
  stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
});

const noFiles = { restored: 0, removed: 0, skipped: 0, failed: 0 };
const talk = () => `talk-${++conversations}`;
const keyOf = (conversation: string) => `http:default:${conversation}`;

async function command(conversation: string, text: string, on = gateway): Promise<string> {
  const response = await on.call("/api/messages", { body: { conversation, text } });
  assert.equal(response.status, 200, await response.clone().text());
  return ((await response.json()) as { text: string }).text;
}

interface Kept {
  messageId: string;
  sessionId: string;
}

async function say(conversation: string, text: string, more: object = {}, on = gateway): Promise<Kept> {
  const response = await on.call("/api/messages", { body: { conversation, text, ...more } });
  assert.equal(response.status, 202, await response.clone().text());
  return (await response.json()) as Kept;
}

/** Sends a message and waits for its answer. */
async function ask(conversation: string, text: string, on = gateway): Promise<void> {
  const body = { model: "parley", user: conversation, messages: [{ role: "user", content: text }] };
  assert.equal((await on.call("/v1/chat/completions", { body })).status, 200);
}

/** Blocks the agent's next turn until `release` is called; `begun` resolves when that turn runs. */
function busy(): { begun: Promise<string>; letGo: () => void } {
  const begun = Promise.withResolvers<string>();
  const goOn = Promise.withResolvers<void>();
  stack.agent.script = async (said, { turnId }) => {
    begun.resolve(turnId);
    await goOn.promise;
    return { deltas: [said] };
  };
  return { begun: begun.promise, letGo: goOn.resolve };
}

// design: 002.3, 004.38
test("/help lists every usage, and a misspelled command gets a suggestion", async () => {
  const heard = stack.agent.heard.length;
  const help = await command(talk(), "/help");
  for (const { usage } of commands) assert.ok(help.includes(usage), usage);
  assert.match(await command(talk(), "/help rewind"), /^\/rewind <n\|id>/);
  assert.match(await command(talk(), "/sesion"), /Did you mean \/session\?/);
  assert.match(await command(talk(), "/queue dance"), /Unknown subcommand: \/queue dance\.\nUsage: \/queue/);
  assert.match(await command(talk(), "/status now"), /^Unexpected argument: now\.\nUsage: \/status/);
  assert.match(await command(talk(), "/cost days abc"), /^Days: must be a number\.\nUsage: \/cost/);
  assert.equal(stack.agent.heard.length, heard);
});

test("answers every command with text for arbitrary arguments", async () => {
  const words = ["", "1", "list", "x y z", "default", "--dry-run", "cancel 99", "edit 1", "mode nonsense", "days -1"];
  for (const { name } of commands) {
    for (const rest of words) {
      if (name === "/compact") continue; // needs a leader; covered by the cluster tests
      const answer = await gateway.call("/api/messages", { body: { conversation: talk(), text: `${name} ${rest}` } });
      const kept = ["/steer", "/later", "/now"].includes(name) && rest !== "";
      assert.equal(answer.status, kept ? 202 : 200, `${name} ${rest}`);
    }
  }
});

test("refuses owner commands to guests with a text before any side effect", async () => {
  const speaker = {
    route: "irc:net:#room",
    role: "guest" as const,
    channel: "irc",
    account: "net",
    conversation: "#room",
    contact: { id: "mallory" },
    replyTo: null,
    direct: false,
    ref: randomUUID(),
  };
  const untouched = new Proxy({}, { get: () => assert.fail("a dependency was used") });
  for (const { command: name, forms = ["AB12"], direct } of accessRules) {
    if (direct !== "owner") continue;
    for (const form of forms) {
      const said = await runCommand(untouched as never, { name, rest: form }, speaker);
      assert.equal(said, `${forms[0] === "AB12" || form === "" ? name : `${name} ${form}`} is for the owner only.`);
    }
  }
});

test("/start greets without a model call, and names only commands that the sender may use", async () => {
  const heard = stack.agent.heard.length;
  const greeting = await command(talk(), "/start deep-link");
  assert.match(greeting, /^Hello, I am an AI agent\./);
  for (const name of ["/help", "/new", "/stop"]) assert.match(greeting, new RegExp(`^${name}: `, "m"));
  assert.equal(stack.agent.heard.length, heard);
});

test("/reset starts a new session, like /new", async () => {
  const conversation = talk();
  const first = await say(conversation, "before");
  assert.match(await command(conversation, "/reset Plums"), /New session started: "Plums"/);
  assert.notEqual((await say(conversation, "after")).sessionId, first.sessionId);
});

test("/whoami and /session name a person and a session once, with the first message as title", async () => {
  const conversation = talk();
  await ask(conversation, "plan the garden");
  assert.match(await command(conversation, "/whoami"), /^You are owner, with the role owner\.\n/);
  assert.match(await command(conversation, "/session"), /^Title: plan the garden$/m);
  assert.match(await command(talk(), "/session"), /no messages yet|Title: none/);
});

// design: 000.40, 000.9, 002.19
test("/new starts a session on every replica, and /session resume returns by title or id", async () => {
  const conversation = talk();
  const first = await say(conversation, "about apples");
  await ask(conversation, "more", other);
  assert.match(await command(conversation, "/new Pears"), /New session started: "Pears"/);
  const second = await say(conversation, "about pears", {}, other);
  assert.notEqual(second.sessionId, first.sessionId);
  assert.match(await command(conversation, "/session show", other), /Title: Pears/);
  assert.match(await command(conversation, "/session list"), /about apples/);
  assert.match(
    await command(conversation, "/session resume ABOUT apples"),
    /continues with session "about apples" \(\w+\), \d+ messages?, \d+ s ago\.\nLast from \S+: more\n/,
  );
  assert.equal((await say(conversation, "again", {}, other)).sessionId, first.sessionId);
  assert.match(await command(conversation, `/session resume ${second.sessionId.slice(-8)}`), /"Pears"/);
  assert.match(await command(conversation, "/session resume nothing like it"), /There is no session "nothing like it"/);
});

// design: 002.38
test("/session list shows the twenty most recently used sessions", async () => {
  const conversation = talk();
  await say(conversation, "the first");
  for (let each = 1; each <= 21; each++) await command(conversation, `/new listed ${each}`);
  const lines = (await command(conversation, "/session list")).split("\n");
  assert.equal(lines.length, 21, "twenty sessions and a hint");
  assert.match(lines[0] ?? "", /listed 21/);
});

// design: 002.19b
test("/session resume takes the number of a session in /session list", async () => {
  const conversation = talk();
  await ask(conversation, "numbered one");
  const { session } = await gateway.json<{ session: Kept }>(`/api/sessions/${keyOf(conversation)}`);
  await command(conversation, "/new numbered two");
  await ask(conversation, "in the second");
  const listed = (await command(conversation, "/session list")).split("\n");
  const number = listed.findIndex((line) => line.includes("numbered one")) + 1;
  assert.match(listed[number - 1] ?? "", new RegExp(`^ +${number}\\. `));
  assert.match(await command(conversation, `/session resume ${number}`), /continues with session "numbered one"/);
  assert.equal((await say(conversation, "again")).sessionId, session.sessionId);
  assert.match(await command(conversation, "/session resume 999"), /There is no session "999"/);
});

test("executes a command once when it is delivered twice", async () => {
  const conversation = talk();
  await ask(conversation, "x");
  const again = () =>
    gateway.call("/api/messages", {
      body: { conversation, text: "/new Once" },
      headers: { "idempotency-key": "new-1" },
    });
  await again();
  const one = await gateway.json<{ session: { sessionId: string } }>(`/api/sessions/${keyOf(conversation)}`);
  await say(conversation, "in it");
  await again();
  const two = await gateway.json<{ session: { sessionId: string } }>(`/api/sessions/${keyOf(conversation)}`);
  assert.equal(two.session.sessionId, one.session.sessionId);
});

test("moves a WebSocket subscription of a route to the route's new session", async () => {
  const conversation = talk();
  const { sessionId } = await say(conversation, "before");
  const ws = await WsReader.open(other);
  ws.say({ type: "subscribe", session: keyOf(conversation) });
  await ws.until((frame) => frame.type === "subscribed" && frame.session === sessionId);
  await command(conversation, "/new");
  const moved = await ws.until((frame) => frame.type === "subscribed" && frame.session !== sessionId);
  await say(conversation, "after");
  await ws.until((frame) => frame.type === "turn.finished" && frame.session === moved.session);
  ws.socket.close();
});

test("/queue lists, edits and cancels queued messages", async () => {
  const conversation = talk();
  const { begun, letGo } = busy();
  await say(conversation, "long");
  await begun;
  const waiting = await say(conversation, "first behind");
  await say(conversation, "second behind");
  assert.match(await command(conversation, "/queue"), /1\. \[queue\] owner: first behind\n2\. /);
  assert.match(await command(conversation, "/queue edit 2 better  words"), /Updated: better words/);
  assert.match(await command(conversation, `/queue cancel ${waiting.messageId}`), /Cancelled: first behind/);
  assert.match(await command(conversation, "/queue cancel 9"), /No queued message matches "9"/);
  letGo();
  stack.agent.script = (said) => ({ deltas: [said] });
  await ask(conversation, "last");
  assert.ok(stack.agent.heard.includes("better  words"));
  assert.equal(stack.agent.heard.includes("first behind"), false);
});

// design: switch.3
test("refuses a message, but no command, when the mode is reject and the agent is busy", async () => {
  const conversation = talk();
  assert.match(await command(conversation, "/queue mode reject"), /is refused/);
  const { begun, letGo } = busy();
  await say(conversation, "count the stars");
  await begun;
  const refused = await other.call("/api/messages", { body: { conversation, text: "hello?" } });
  assert.equal(refused.status, 409);
  assert.ok(Number(refused.headers.get("retry-after")) > 0);
  const { error } = (await refused.json()) as { error: { code: string; message: string } };
  assert.equal(error.code, "busy");
  assert.match(error.message, /busy with "count the stars"\. Try again later, or send \/stop/);
  assert.match(await command(conversation, "/status"), /working/);
  const later = await say(conversation, "/later but this waits");
  letGo();
  stack.agent.script = (said) => ({ deltas: [said] });
  await ask(conversation, "/later end");
  assert.ok(stack.agent.heard.includes("but this waits"), later.messageId);
});

test("/now stops exactly the running turn, and its text is handled next", async () => {
  const conversation = talk();
  const { begun, letGo } = busy();
  const { sessionId } = await say(conversation, "never mind");
  const turnId = await begun;
  await say(conversation, "/now do this instead");
  const { cancelRequested } = await gateway.json<{ cancelRequested: boolean }>(`/api/turns/${turnId}`);
  assert.equal(cancelRequested, true);
  assert.ok(stack.agent.cancelled.includes(sessionId));
  letGo();
  stack.agent.script = (said) => ({ deltas: [said] });
  await ask(conversation, "done?");
  assert.ok(stack.agent.heard.includes("do this instead"));
});

// design: 000.2
test("ends the coalescing window when a command arrives, with one turn for the messages", async () => {
  const replica = await stack.gateway(settings(`${perConversation}[queue]\nmode = "coalesce"\nwindow_ms = 60000`));
  const conversation = talk();
  const { sessionId } = await say(conversation, "one", {}, replica);
  await say(conversation, "two", {}, replica);
  const answered = Promise.withResolvers<string>();
  stack.agent.script = (said, turn) => {
    if (turn.sessionId === sessionId) answered.resolve(said);
    return { deltas: [said] };
  };
  await command(conversation, "/status", replica);
  assert.equal(await answered.promise, "one\ntwo");
});

test("decides an approval once, by command, HTTP or control request, from any conversation", async () => {
  const conversation = talk();
  const goOn = Promise.withResolvers<void>();
  const running = Promise.withResolvers<string>();
  stack.agent.script = async (said, { turnId }) => {
    running.resolve(turnId);
    await goOn.promise;
    return { deltas: [said] };
  };
  await say(conversation, "delete it");
  const turnId = await running.promise;
  await asksFor(turnId, ["AAAA", "BBBB", "CCCC", "ONCE"]);
  const elsewhere = talk();
  assert.match(await command(elsewhere, "/approvals"), /AAAA {2}exec: rm x/);
  assert.match(await command(elsewhere, "/approve aaaa always"), /^Allowed, along with similar calls/);
  assert.match(
    await command(elsewhere, "/approve once always"),
    /^Allowed, only this once: such calls require approval/,
  );
  assert.match(await command(elsewhere, "/deny AAAA"), /was already allowed by owner/);
  assert.match(await command(elsewhere, "/deny ZZZZ"), /There is no approval ZZZZ/);
  assert.match(await command(elsewhere, "/approve"), /The id is required\.\nUsage: \/approve/);
  const decided = await other.json<{ outcome: string }>("/api/approvals/BBBB", { body: { decision: "deny" } });
  assert.equal(decided.outcome, "decided");
  const ws = await WsReader.open(gateway);
  const control = (request: object, id: string) =>
    ws.say({ type: "control_request", request_id: id, session: keyOf(conversation), request });
  const answerTo = async (id: string) => {
    const frame = await ws.until(
      ({ type, ...rest }) =>
        type === "control_response" && (rest["response"] as { request_id: string }).request_id === id,
    );
    return frame["response"] as { subtype: string; code?: string; error?: string };
  };
  control({ subtype: "deny", approval_id: "CCCC" }, "r1");
  control({ subtype: "levitate" }, "r2");
  control({ subtype: "set_permission_mode", mode: "bypass" }, "r3");
  control({ subtype: "set_effort", effort: "low" }, "r4");
  control({ subtype: "rewind_files", checkpointId: randomUUID(), dryRun: "yes" }, "r5");
  control({ subtype: "interrupt" }, "r6");
  assert.equal((await answerTo("r1")).subtype, "success");
  assert.match((await answerTo("r2")).error ?? "", /unknown control request "levitate"; supported: approve, /);
  assert.match((await answerTo("r3")).error ?? "", /"bypass" is not allowed/);
  assert.equal((await answerTo("r4")).subtype, "success");
  assert.equal((await answerTo("r5")).code, "invalid_request");
  assert.equal((await answerTo("r6")).subtype, "success");
  ws.socket.close();
  const { approvals } = await gateway.json<{ approvals: { id: string; state: string }[] }>("/api/approvals?state=all");
  assert.deepEqual(approvals.map(({ id, state }) => `${id} ${state}`).sort(), [
    "AAAA allowed",
    "BBBB denied",
    "CCCC denied",
    "ONCE allowed",
  ]);
  goOn.resolve();
});

test("restores another checkpoint, and after a dry run, when a program repeats the id of its request", async () => {
  const runner = await stack.stack.bus("tool-runner");
  const rewinds = new Map<string, { checkpointId: string; dryRun: boolean }>();
  // A repeated id has the same report.
  const serving = runner.serve(checkpointRewind, async ({ opId, turnId, dryRun }) => {
    const rewound = rewinds.get(opId) ?? { checkpointId: turnId, dryRun };
    rewinds.set(opId, rewound);
    return { checkpointId: rewound.dryRun ? null : rewound.checkpointId, counts: noFiles, files: [], omitted: 0 };
  });
  await runner.flush();
  const conversation = talk();
  await ask(conversation, "x");
  const reportOf = async (checkpointId: string, dryRun: boolean) => {
    // The ids of a program begin again with each connection.
    const ws = await WsReader.open(gateway);
    const request = { subtype: "rewind_files", checkpointId, dryRun };
    ws.say({ type: "control_request", request_id: "1", session: keyOf(conversation), request });
    const { response } = await ws.until(({ type }) => type === "control_response");
    ws.socket.close();
    return (response as { response: { checkpointId: string | null } }).response.checkpointId;
  };
  const [first, second] = [randomUUID(), randomUUID()];
  assert.equal(await reportOf(first, true), null);
  assert.equal(await reportOf(first, false), first);
  assert.equal(await reportOf(second, false), second);
  assert.equal(await reportOf(first, false), first);
  assert.equal(rewinds.size, 3);
  serving.close();
});

test("notifies only the owner, once per message, that a pending approval blocks the chat", async () => {
  const platform = new Platform("held-up");
  const people = { owners: ["boss"], groups: ["#team"] };
  const { config } = settings(`${perConversation}[queue]\nmode = "queue"`);
  await stack.gateway({ config, overrides: { accounts: [platform.account(people, "held-up")] } });
  const goOn = Promise.withResolvers<void>();
  const running = Promise.withResolvers<string>();
  stack.agent.script = async (said, { turnId }) => {
    if (said !== "clear the folder") return { deltas: [said] };
    running.resolve(turnId);
    await goOn.promise;
    return { deltas: [said] };
  };
  const say = (from: string, text: string) =>
    platform.say({ conversation: "#team", from, text, direct: false, addressed: true });
  say("boss", "clear the folder");
  await asksFor(await running.promise, ["DDDD"]);
  say("guest", "hello?");
  say("boss", "or rather not");
  await platform.until(() => platform.sent.length === 1);
  assert.match(platform.sent[0]?.text ?? "", /waiting for your decision on DDDD first: \/approve DDDD, \/deny DDDD/);
  say("boss", "/deny DDDD");
  await platform.until(() => platform.sent.length === 2);
  say("boss", "and now?");
  say("boss", "/approvals");
  await platform.until(() => platform.sent.length === 3);
  assert.doesNotMatch(platform.sent[2]?.text ?? "", /waiting for your decision/);
  goOn.resolve();
});

test("changes a session's title, overrides and status over the API and names invalid values", async () => {
  const conversation = talk();
  await ask(conversation, "x");
  const path = `/api/sessions/${keyOf(conversation)}`;
  const patch = (body: object) => gateway.call(path, { method: "PATCH", body });
  const changed = await patch({ title: "T", overrides: { effort: "high", queueMode: "reject" }, status: "archived" });
  const { session } = (await changed.json()) as { session: { title: string; status: string; overrides: object } };
  assert.deepEqual([session.title, session.status], ["T", "archived"]);
  assert.deepEqual(session.overrides, { effort: "high", queueMode: "reject" });
  for (const [body, words] of [
    [{ overrides: { permissionMode: "bypass" } }, /allow_bypass/],
    [{ overrides: { effort: "heroic" } }, /effort/],
    [{ colour: "red" }, /unknown field "colour"/],
    [{ title: "" }, /title/],
  ] as const) {
    const refused = await patch(body);
    assert.equal(refused.status, 400);
    assert.match(((await refused.json()) as { error: { message: string } }).error.message, words);
  }
  assert.equal((await gateway.call("/api/sessions/nowhere", { method: "PATCH", body: {} })).status, 404);
});

// design: 003.22
test("replaces a session's list of rules with each PATCH, and removes it with null", async () => {
  const conversation = talk();
  await ask(conversation, "x");
  const overrides = async (body: object) => {
    const response = await gateway.call(`/api/sessions/${keyOf(conversation)}`, { method: "PATCH", body });
    return ((await response.json()) as { session: { overrides: object } }).session.overrides;
  };
  const deny = ["write"];
  assert.deepEqual(await overrides({ overrides: { allow: ["read", "exec(ls)"], deny } }), {
    allow: ["read", "exec(ls)"],
    deny,
  });
  assert.deepEqual(await overrides({ overrides: { allow: ["exec(make)"] } }), { allow: ["exec(make)"], deny });
  assert.deepEqual(await overrides({ overrides: { allow: null } }), { deny });
});

// design: interaction.11, switch.2
test("resolves and resumes sessions by their old keys after a change of the session policy", async () => {
  const conversation = talk();
  const { sessionId } = await say(conversation, "kept through the change");
  const singleton = await stack.gateway(settings('[queue]\nmode = "queue"'));
  const found = await singleton.json<{ session: { sessionId: string } }>(`/api/sessions/${keyOf(conversation)}`);
  assert.equal(found.session.sessionId, sessionId);
  const main = await say(conversation, "in the one thread", {}, singleton);
  assert.notEqual(main.sessionId, sessionId);
  await command(conversation, `/session resume ${sessionId}`, singleton);
  assert.equal((await say(conversation, "here again", {}, singleton)).sessionId, sessionId);
  await command(conversation, "/session resume main", singleton);
});

/** Commits tool calls of the turn and requests an approval for each, with the given ids. */
async function asksFor(turnId: string, ids: readonly string[]): Promise<void> {
  const { epoch } = await claimed(turnId);
  await core.request(store.stepCommit, {
    opId: randomUUID(),
    epoch,
    turnId,
    n: 1,
    model: "test",
    stopReason: "tool_use",
    usage: noUsage,
    parts: [{ type: "text", text: "…" }],
    results: 0,
    toolCalls: ids.map((id) => ({ callId: id, tool: "exec", class: "once" as const, input: '{"command":"rm x"}' })),
    outgoing: [],
    finish: null,
  });
  for (const [index, id] of ids.entries()) {
    await core.request(store.approvalRequest, {
      opId: randomUUID(),
      epoch,
      turnId,
      n: 2 + index,
      id,
      tool: "exec",
      callHash: String(index).repeat(64),
      summary: "rm x",
      reason: "it deletes",
      expiresInMs: 60_000,
      outgoing: [],
      // An ask rule requires approval of each call.
      ...(id === "ONCE"
        ? { authorization: { input: "{}", notes: [], rules: "a", askedByHook: false, always: null } }
        : {}),
    });
  }
}

async function claimed(turnId: string): Promise<{ epoch: number }> {
  const { turn } = await core.request(store.turnGet, { turnId });
  assert.equal(turn.state, "running");
  return { epoch: stack.agent.epoch };
}
