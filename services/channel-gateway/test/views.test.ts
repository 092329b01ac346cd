// Projections of turns: the five server-sent events of /v1/chat, and WebSockets by model call.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parseSettings } from "@parley/chassis";
import type { LiveEvent } from "@parley/contracts";
import { z } from "zod";
import { startGatewayStack, type GatewayStack, type Replica } from "./support/stack.ts";
import { WsReader, type ReceivedFrame } from "./support/watchers.ts";

let stack: GatewayStack;
let gateway: Replica;

before(async () => {
  stack = await startGatewayStack();
  gateway = await stack.gateway({
    config: { settings: parseSettings('[session]\npolicy = "per_conversation"', "test") },
  });
});
after(() => stack[Symbol.asyncDispose]());

/** Parses the events of a complete stream. */
function eventsIn(text: string): { event: string; data: unknown }[] {
  return text.split("\n\n").flatMap((frame) => {
    const match = /^event: (\w+)\ndata: (.*)$/.exec(frame);
    return match === null ? [] : [{ event: match[1] ?? "", data: JSON.parse(match[2] ?? "") as unknown }];
  });
}

/** Resolves when `count` matching frames were received. */
async function heard(ws: WsReader, count: number, fits: (frame: ReceivedFrame) => boolean): Promise<void> {
  await ws.until(() => ws.heard.filter(fits).length >= count);
}

async function chat(message: string, session: string): Promise<{ event: string; data: unknown }[]> {
  const response = await gateway.call("/v1/chat", { body: { message, session_id: session } });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/);
  return eventsIn(await response.text());
}

// design: 001.1, 001.26
test("/v1/chat streams the answer as tokens and ends with one done that carries usage", async () => {
  const events = await chat("hello", "simple");
  const tokens = events.flatMap(({ event, data }) => (event === "token" ? [String(data)] : []));
  assert.equal(tokens.join(""), "You said: hello");
  assert.ok(tokens.length > 1, "more than one token");
  const last = events.at(-1);
  assert.equal(last?.event, "done");
  const done = z.object({ exit_reason: z.string(), usage: z.object({ input_tokens: z.number() }) }).parse(last.data);
  assert.deepEqual([done.exit_reason, done.usage.input_tokens], ["end_turn", 3]);
});

// design: 001.1
test("/v1/chat streams one tool_call and then one tool_result for a call, also when its events are repeated", async () => {
  // A subscription to a new session may miss its first live events.
  await chat("hello", "simple-call");
  stack.agent.script = (said, { turnId, publish }) => {
    const call = { turnId, callId: "c1", tool: "read" };
    const started: LiveEvent = { type: "tool.started", ...call, input: '{"path":"a"}' };
    const finished: LiveEvent = { type: "tool.finished", ...call, isError: false, content: "text", durationMs: 1 };
    for (const event of [started, started, finished, finished]) publish(event);
    return { deltas: [said] };
  };
  try {
    assert.deepEqual(
      (await chat("look", "simple-call")).filter(({ event }) => event !== "done"),
      [
        { event: "tool_call", data: { id: "c1", name: "read", input: '{"path":"a"}' } },
        { event: "tool_result", data: { id: "c1", name: "read", content: "text", is_error: false } },
        { event: "token", data: "look" },
      ],
    );
  } finally {
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
});

// design: 001.26
test("/v1/chat ends a failed turn with one error, answers commands and refuses invalid tokens", async () => {
  stack.agent.script = () => ({ deltas: [], text: "the model is away", exitReason: "error" });
  try {
    assert.deepEqual(await chat("break", "simple-error"), [{ event: "error", data: "the model is away" }]);
  } finally {
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
  const help = await chat("/help", "simple");
  assert.deepEqual(
    help.map(({ event }) => event),
    ["token", "done"],
  );
  const stranger = await gateway.call("/v1/chat", { body: { message: "x" }, headers: { authorization: "Bearer no" } });
  assert.equal(stranger.status, 401);
});

test("/v1/chat returns the answer when all events are lost", async () => {
  stack.agent.lose = () => true;
  try {
    const events = await chat("silence", "simple-lost");
    assert.deepEqual(
      events.map(({ event }) => event),
      ["token", "done"],
    );
    assert.equal(events[0]?.data, "You said: silence");
  } finally {
    stack.agent.lose = () => false;
  }
});

// design: 002.36
test("?format=stream answers pings and refuses empty messages", async () => {
  const ws = await WsReader.open(gateway, {}, [], "?format=stream&conversation=pings");
  ws.say({ type: "ping" });
  await ws.until(({ type }) => type === "pong");
  ws.say({ type: "message", text: " " });
  await ws.until(({ type }) => type === "error");
  ws.socket.close();
});

// design: 004.18
test("?format=stream sends what was said before, once, and then only what is new", async () => {
  const address = "?format=stream&conversation=history";
  const first = await WsReader.open(gateway, {}, [], address);
  for (const [at, text] of ["one", "two"].entries()) {
    first.say({ type: "message", text });
    await heard(first, at + 1, (frame) => frame.type === "event" && frame["event"] === "thinking_finished");
  }
  first.socket.close();
  const second = await WsReader.open(gateway, {}, [], address);
  const history = await second.until(({ type }) => type === "history");
  const Said = z.array(z.object({ role: z.string(), content: z.string(), at: z.iso.datetime() }));
  assert.deepEqual(
    Said.parse(history["messages"]).map(({ role, content }) => [role, content]),
    [
      ["user", "one"],
      ["assistant", "You said: one"],
      ["user", "two"],
      ["assistant", "You said: two"],
    ],
  );
  second.say({ type: "message", text: "three" });
  await heard(second, 1, (frame) => frame.type === "event" && frame["event"] === "thinking_finished");
  assert.equal(second.heard[0]?.type, "history", "nothing before the history");
  assert.deepEqual(
    second.heard.filter(({ type }) => type === "history" || type === "response"),
    [history],
  );
  second.socket.close();
});

// design: 004.18
test("?format=stream sends the last fifty messages as the history", async () => {
  const texts = Array.from({ length: 26 }, (_, index) => `message ${index}`);
  for (const text of texts) await chat(text, "long-history");
  const ws = await WsReader.open(gateway, {}, [], "?format=stream&conversation=long-history");
  const { messages } = await ws.until(({ type }) => type === "history");
  assert.deepEqual(
    z.array(z.object({ content: z.string() })).parse(messages),
    texts.slice(1).flatMap((content) => [{ content }, { content: `You said: ${content}` }]),
  );
  ws.socket.close();
});

const isEndOfTurn = (frame: ReceivedFrame) => frame.type === "event" && frame["event"] === "thinking_finished";

// design: 004.18b
test("?format=stream&all=true also sends the frames of other conversations, each once", async () => {
  const ws = await WsReader.open(gateway, {}, [], "?format=stream&conversation=all-own&all=true");
  const inOther = (key: string) => (frame: ReceivedFrame) => frame.session === `http:default:${key}`;
  for (const [at, text] of ["one", "two"].entries()) {
    await gateway.json("/api/messages", { body: { text, conversation: "all-other" } });
    await heard(ws, at + 1, (frame) => inOther("all-other")(frame) && isEndOfTurn(frame));
  }
  ws.say({ type: "message", text: "mine" });
  await ws.until((frame) => frame.session === undefined && isEndOfTurn(frame));
  // Later frames would show a repetition of the earlier ones.
  await gateway.json("/api/messages", { body: { text: "three", conversation: "all-other" } });
  await heard(ws, 3, (frame) => inOther("all-other")(frame) && isEndOfTurn(frame));
  const texts = (frames: ReceivedFrame[]) => {
    const byId = new Map<unknown, string>();
    for (const { type, msg_id: id, content } of frames) {
      if (type === "stream_chunk") byId.set(id, `${byId.get(id) ?? ""}${String(content)}`);
      if (type === "response") byId.set(id, String(content));
    }
    return [...byId.values()];
  };
  assert.deepEqual(texts(ws.heard.filter(inOther("all-other"))), ["You said: one", "You said: two", "You said: three"]);
  assert.deepEqual(texts(ws.heard.filter(({ session }) => session === undefined)), ["You said: mine"]);
  ws.socket.close();
});

// design: 004.16, 004.18c, 004.19
test("?format=stream sends each model call as a stream with its own id, without repetition", async () => {
  const ws = await WsReader.open(gateway, {}, [], "?format=stream&conversation=by-call");
  const isEnd = (frame: ReceivedFrame) => frame.type === "event" && frame["event"] === "thinking_finished";
  // The first message creates the session; from then on all events are received.
  let begin = 0;
  for (const [at, content] of ["zero", "one", "two"].entries()) {
    ws.say({ type: "message", content });
    await heard(ws, at + 1, isEnd);
    if (at === 0) begin = ws.heard.length;
  }
  const frames = ws.heard.slice(begin);
  const started = frames.flatMap((frame) => (frame.type === "stream_start" ? [frame["msg_id"]] : []));
  assert.equal(new Set(started).size, 2);
  assert.deepEqual(
    frames.flatMap((frame) => (frame.type === "stream_end" ? [frame["discarded"]] : [])),
    [false, false],
  );
  assert.deepEqual(
    frames.filter(({ type }) => type === "response"),
    [],
  );
  ws.socket.close();
});

// design: 004.19, interaction.12
test("?format=stream sends a response with the stream's id when deltas are lost", async () => {
  const ws = await WsReader.open(gateway, {}, [], "?format=stream&conversation=by-call-lost");
  // The session must exist: a subscription to a new session may miss its first live events.
  ws.say({ type: "message", text: "zero" });
  await heard(ws, 1, (frame) => frame.type === "event" && frame["event"] === "thinking_finished");
  const begin = ws.heard.length;
  stack.agent.lose = (event) => event.type === "text.delta" && event.text !== "You said: ";
  try {
    ws.say({ type: "message", text: "gap" });
    const response = await ws.until(({ type, content }) => type === "response" && content === "You said: gap");
    const start = ws.heard.slice(begin).find(({ type }) => type === "stream_start");
    assert.deepEqual([response["content"], response["msg_id"]], ["You said: gap", start?.["msg_id"]]);
  } finally {
    stack.agent.lose = () => false;
  }
  ws.socket.close();
});

test("refuses an unknown format", async () => {
  await assert.rejects(WsReader.open(gateway, {}, [], "?format=morse"));
});

test("/api/agent returns the model, tools and permission mode, and 404 for an unknown session", async () => {
  const Info = z.object({
    model: z.object({ model: z.string() }).nullable(),
    tools: z.array(z.string()),
    mcpServers: z.array(z.string()),
    permissionMode: z.string(),
  });
  const info = Info.parse(await gateway.json("/api/agent"));
  assert.equal(info.model?.model, "test-1");
  assert.deepEqual([info.tools, info.mcpServers], [["message"], []]);
  assert.equal(info.permissionMode, "default");
  const missing = await gateway.call("/api/agent?session=nowhere");
  assert.equal(missing.status, 404);
});
