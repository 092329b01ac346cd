// Live views of a session: server-sent events and WebSockets on two replicas, with lost events.
import { loadSettings, parseSettings } from "@parley/chassis";
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket, type ClientOptions } from "ws";
import { startGatewayStack, token, type GatewayStack, type Replica } from "./support/stack.ts";
import { SseReader, WsReader, type ReceivedFrame } from "./support/watchers.ts";

let stack: GatewayStack;
let one: Replica;
let two: Replica;
let conversation = 0;

before(async () => {
  stack = await startGatewayStack();
  const config = { settings: parseSettings('[session]\npolicy = "per_conversation"\n[queue]\nmode = "queue"', "test") };
  [one, two] = await Promise.all([stack.gateway({ config }), stack.gateway({ config })]);
});
after(() => stack[Symbol.asyncDispose]());
beforeEach(() => {
  conversation++;
  stack.agent.lose = () => false;
});

const name = () => `talk-${conversation}`;
const key = () => `http:default:${name()}`;
const isEnd = (said: string) => (frame: ReceivedFrame) =>
  frame.type === "turn.finished" && frame["text"] === `You said: ${said}`;
const say = async (gateway: Replica, text: string) => {
  const response = await gateway.call("/api/messages", { body: { text, conversation: name() } });
  assert.equal(response.status, 202);
  return (await response.json()) as { messageId: string; sessionId: string; duplicate: boolean };
};
/** Asserts that the seqs have no gaps and no duplicates. */
const assertWhole = (seqs: number[], from = 1) =>
  assert.deepEqual(
    seqs,
    Array.from({ length: seqs.length }, (_, index) => from + index),
  );

test("streams a session from its first event when the reader connects before it exists", async () => {
  const reader = await SseReader.open(two, `?session=${encodeURIComponent(key())}`);
  await say(one, "first");
  await reader.until(isEnd("first"));
  assertWhole(reader.seqs);
  await say(one, "second");
  await reader.until(isEnd("second"));
  assert.ok(reader.heard.some((frame) => frame.type === "text.delta" && frame["text"] === "second"));
  reader.close();
});

test("shows the first turn of a new session from its start", async () => {
  for (let round = 0; round < 10; round++) {
    conversation++;
    const ws = await WsReader.open(one);
    ws.say({ type: "subscribe", session: key() });
    ws.say({ type: "message", id: `m-${conversation}`, conversation: name(), text: "hello" });
    await ws.until(isEnd("hello"));
    const live = ws.heard.flatMap(({ type }) => (type === "turn.started" || type === "text.delta" ? [type] : []));
    assert.deepEqual(live, ["turn.started", "text.delta", "text.delta"]);
    ws.socket.close();
  }
});

// design: 003.43
test("resumes on another replica with the last event id without gaps", async () => {
  const { sessionId } = await say(one, "a");
  const reader = await SseReader.open(one, `?session=${sessionId}&after=0`);
  await reader.until(isEnd("a"));
  reader.close();
  await reader.ended;
  await say(one, "b");
  await one.json(`/api/sessions/${sessionId}`);
  await say(two, "c");
  const again = await SseReader.open(two, `?session=${sessionId}`, { "last-event-id": reader.lastId ?? "" });
  await say(two, "d");
  await again.until(isEnd("d"));
  assertWhole([...reader.seqs, ...again.seqs]);
  again.close();
});

test("continues a stream of a key with the session that the key is bound to after /new", async () => {
  const query = `?session=${encodeURIComponent(key())}`;
  for (const text of ["a", "b"]) await say(one, text);
  const reader = await SseReader.open(one, `${query}&after=0`);
  await reader.until(isEnd("b"));
  await two.json("/api/messages", { body: { text: "/new", conversation: name() } });
  const { sessionId } = await say(two, "c");
  const { session } = await reader.until(isEnd("c"));
  assert.equal(session, sessionId);
  reader.close();
  await reader.ended;
});

test("sends the whole new session when the last event id is of the session before /new", async () => {
  const query = `?session=${encodeURIComponent(key())}`;
  for (const text of ["a", "b"]) await say(one, text);
  const reader = await SseReader.open(one, `${query}&after=0`);
  await reader.until(isEnd("b"));
  reader.close();
  await reader.ended;
  await two.json("/api/messages", { body: { text: "/new", conversation: name() } });
  const { sessionId } = await say(two, "c");
  const other = await SseReader.open(two, `?session=${sessionId}&after=0`);
  await other.until(isEnd("c"));
  other.close();
  const again = await SseReader.open(two, query, { "last-event-id": reader.lastId ?? "" });
  await again.until(isEnd("c"));
  assertWhole(again.seqs);
  again.close();
});

test("reads durable events that are lost on the bus from the store, in order", async () => {
  const { sessionId } = await say(one, "x");
  const sse = await SseReader.open(one, `?session=${sessionId}&after=0`);
  const ws = await WsReader.open(two);
  ws.say({ type: "subscribe", session: sessionId, after: 0 });
  await ws.until(isEnd("x"));
  let durable = 0;
  stack.agent.lose = (event) => "seq" in event && durable++ % 2 === 0;
  for (const text of ["y", "z", "last"]) await say(two, text);
  await Promise.all([sse.until(isEnd("last")), ws.until(isEnd("last"))]);
  assertWhole(sse.seqs);
  assertWhole(ws.seqs);
  sse.close();
  ws.socket.close();
});

test("finds the end of a turn whose event was lost without further events", async () => {
  const { sessionId } = await say(one, "p");
  const ws = await WsReader.open(one);
  ws.say({ type: "subscribe", session: sessionId, after: 0 });
  await ws.until(isEnd("p"));
  stack.agent.lose = (event) => event.type === "turn.finished" || event.type === "message";
  await say(two, "q");
  await ws.until(isEnd("q"));
  assertWhole(ws.seqs);
  ws.socket.close();
});

test("accepts a WebSocket message with a repeated id and stores it once", async () => {
  const ws = await WsReader.open(one);
  ws.say({ type: "subscribe", session: key() });
  await ws.until(({ type }) => type === "subscribed");
  const message = { type: "message", id: "m-1", conversation: name(), text: "once" };
  ws.say(message);
  ws.say(message);
  await ws.until((frame) => frame.type === "accepted" && frame["duplicate"] === true);
  const accepted = ws.heard.filter(({ type }) => type === "accepted");
  assert.equal(accepted.length, 2);
  assert.equal(accepted[0]?.["messageId"], accepted[1]?.["messageId"]);
  await ws.until(isEnd("once"));
  assert.equal(stack.agent.heard.filter((said) => said === "once").length, 1);
  ws.socket.close();
});

test("returns an error with the id when a WebSocket id is reused with a different text", async () => {
  const ws = await WsReader.open(one);
  const message = { type: "message", id: "m-2", conversation: name(), text: "first" };
  ws.say(message);
  ws.say({ ...message, text: "second" });
  ws.say({ type: "ping" });
  await ws.until(({ type }) => type === "pong");
  assert.deepEqual(
    ws.heard.map(({ type, id, code }) => [type, id, code]),
    [
      ["accepted", "m-2", undefined],
      ["error", "m-2", "idempotency_key_reused"],
      ["pong", undefined, undefined],
    ],
  );
  ws.socket.close();
});

test("stores the messages of one client in the order they were sent", async () => {
  const ws = await WsReader.open(one);
  const texts = Array.from({ length: 60 }, (_, index) => `in-order-${index}`);
  for (const text of texts) ws.say({ type: "message", id: text, conversation: name(), text });
  ws.say({ type: "subscribe", session: key(), after: 0 });
  await ws.until(isEnd("in-order-59"));
  assert.deepEqual(
    stack.agent.heard.filter((said) => said.startsWith("in-order-")),
    texts,
  );
  ws.socket.close();
});

test("handles commands and cancellation over a WebSocket", async () => {
  const began = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  stack.agent.script = async (said) => {
    began.resolve();
    await goOn.promise;
    return { deltas: [said] };
  };
  try {
    const ws = await WsReader.open(one);
    ws.say({ type: "message", id: "c", conversation: name(), text: "/help" });
    assert.equal((await ws.until(({ type }) => type === "command"))["id"], "c");
    ws.say({ type: "message", id: "l", conversation: name(), text: "long" });
    await began.promise;
    ws.say({ type: "cancel", session: key() });
    assert.ok((await ws.until(({ type }) => type === "cancelled"))["turnId"]);
    assert.ok(stack.agent.cancelled.length > 0);
    ws.socket.close();
  } finally {
    goOn.resolve();
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
});

test("answers invalid frames with an error and keeps the socket open", async () => {
  const ws = await WsReader.open(one);
  const errorAfter = async (frame: object | string) => {
    const before = ws.heard.length;
    ws.say(frame);
    return ws.until((heard) => heard.type === "error" && ws.heard.indexOf(heard) >= before);
  };
  assert.equal((await errorAfter("{broken"))["code"], "invalid_json");
  assert.match(String((await errorAfter({ type: "ping", extra: 1 }))["message"]), /unknown field "extra"/);
  assert.equal((await errorAfter({ type: "dance" }))["code"], "invalid_request");
  assert.match(String((await errorAfter({ type: "message", id: "x" }))["message"]), /text/);
  const large = { type: "message", id: "big", text: "x".repeat(300 * 1024) };
  const tooLarge = await errorAfter(large);
  assert.deepEqual([tooLarge["code"], tooLarge["id"]], ["message_too_large", "big"]);
  ws.socket.send(Buffer.from([1, 2, 3]));
  ws.say({ type: "ping" });
  await ws.until(({ type }) => type === "pong");
  ws.socket.close();
});

test("refuses ids and sessions with a NUL as the caller's mistake", async () => {
  const asked = await one.call("/api/messages", { body: { text: "x", session: "a\0" } });
  assert.equal(asked.status, 404);
  const ws = await WsReader.open(one);
  ws.say({ type: "message", id: "a\0b", conversation: name(), text: "x" });
  ws.say({ type: "cancel", session: "a\0" });
  ws.say({ type: "ping" });
  await ws.until(({ type }) => type === "pong");
  assert.deepEqual(
    ws.heard.filter(({ type }) => type === "error").map(({ code }) => code),
    ["invalid_request", "not_found"],
  );
  ws.socket.close();
});

test("accepts a token as a subprotocol and refuses invalid tokens, origins and hosts", async () => {
  const browser = await WsReader.open(one, {}, ["parley.v1", `parley.bearer.${token}`]);
  assert.equal(browser.socket.protocol, "parley.v1");
  browser.socket.close();
  const refused = (options: ClientOptions, protocols: string[] = [], query = "") =>
    new Promise<number>((resolve, reject) => {
      const socket = new WebSocket(`${one.url.replace("http", "ws")}/api/ws${query}`, protocols, options);
      socket.once("unexpected-response", (_request, response) => {
        resolve(response.statusCode ?? 0);
        socket.terminate();
      });
      socket.once("open", () => reject(new Error("it was opened")));
      socket.on("error", () => undefined);
    });
  const good = { authorization: `Bearer ${token}` };
  assert.equal(await refused({}), 401);
  assert.equal(await refused({}, [], `?token=${token}`), 401);
  assert.equal(await refused({}, ["parley.v1", "parley.bearer.wrong"]), 401);
  assert.equal(await refused({ headers: good, origin: "https://evil.example" }), 403);
  assert.equal(await refused({ headers: { ...good, host: "evil.example" } }), 403);
  const same = await WsReader.open(one, { origin: one.url, headers: good });
  same.socket.close();
});

// design: switch.18
test("disconnects only a reader that is too slow for durable events", async () => {
  const { sessionId } = await say(one, "go");
  const slow = await WsReader.open(one);
  slow.say({ type: "subscribe", session: sessionId });
  await slow.until(({ type }) => type === "subscribed");
  slow.socket.pause();
  const quick = await WsReader.open(one);
  quick.say({ type: "subscribe", session: sessionId });
  await quick.until(({ type }) => type === "subscribed");
  stack.agent.script = () => ({ deltas: [], text: "y".repeat(200_000) });
  try {
    for (let index = 0; index < 40; index++) await say(one, `fill-${index}`);
    await quick.until(() => quick.heard.filter(({ type }) => type === "turn.finished").length === 40);
    slow.socket.resume();
    const { code } = await slow.closed;
    assert.ok(code === 1013 || code === 1006, `code ${code}`);
    assert.equal(quick.socket.readyState, WebSocket.OPEN);
  } finally {
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
    quick.socket.close();
  }
});

test("answers a request when its turn ends during the drain", async () => {
  const draining = await stack.gateway({ config: { settings: loadSettings(undefined) } });
  const began = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  stack.agent.script = async (said) => {
    began.resolve();
    await goOn.promise;
    return { deltas: ["You said: ", said] };
  };
  try {
    const ws = await WsReader.open(draining);
    const waiting = draining.call("/v1/chat/completions", {
      body: { messages: [{ role: "user", content: "soon" }] },
    });
    await began.promise;
    const closed = draining.close();
    await ws.closed;
    // Longer than the 2 s after which every waiting request was once ended.
    await delay(2_200);
    goOn.resolve();
    const answer = await waiting;
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /You said: soon/);
    await closed;
  } finally {
    goOn.resolve();
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
});

// The WebSocket library waits 30 s for the answer to a close, and a request may take 60 s to arrive.
test("drains in time when a client does not answer the close of its WebSocket", { timeout: 25_000 }, async () => {
  const draining = await stack.gateway({ config: { drainMs: 20_000 } });
  const ws = await WsReader.open(draining);
  ws.socket.pause();
  await draining.close();
  ws.socket.terminate();
});

test("drains in time when a client has sent a part of its request", { timeout: 25_000 }, async () => {
  const draining = await stack.gateway({ config: { drainMs: 4_000 } });
  const client = connect(Number(new URL(draining.url).port), "127.0.0.1");
  client.on("error", () => undefined);
  const head = [`POST /api/attachments HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`];
  client.write(`${[...head, "Content-Length: 100", "Expect: 100-continue"].join("\r\n")}\r\n\r\n`);
  // The server has read the head: it asks for the body.
  await once(client, "data");
  await draining.close();
  client.destroy();
});

test("closes WebSockets with 1001, ends streams and answers waiting requests when draining", async () => {
  const config = { settings: loadSettings(undefined), drainMs: 1_000 };
  const third = await stack.gateway({ config });
  const began = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  stack.agent.script = async (said) => {
    if (said === "for long") {
      began.resolve();
      await goOn.promise;
    }
    return { deltas: ["You said: ", said] };
  };
  try {
    const ws = await WsReader.open(third);
    const sse = await SseReader.open(third);
    const waiting = third.call("/v1/chat/completions", {
      body: { messages: [{ role: "user", content: "for long" }] },
      headers: { "idempotency-key": "drained" },
    });
    await began.promise;
    const closed = third.close();
    assert.equal((await ws.closed).code, 1001);
    await sse.ended;
    const answer = await waiting;
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get("retry-after"), "2");
    assert.match(await answer.text(), /shutting down/);
    await closed;
    goOn.resolve();
    const fourth = await stack.gateway({ config });
    const again = await fourth.json<{ choices: { message: { content: string } }[] }>("/v1/chat/completions", {
      body: { messages: [{ role: "user", content: "for long" }] },
      headers: { "idempotency-key": "drained" },
    });
    assert.equal(again.choices[0]?.message.content, "You said: for long");
  } finally {
    goOn.resolve();
    stack.agent.script = (said) => ({ deltas: ["You said: ", said] });
  }
});
