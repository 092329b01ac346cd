import assert from "node:assert/strict";
import { test } from "node:test";

import type { SessionEvent } from "@parley/contracts";

import { Conversation } from "../src/chat/conversation.ts";
import type { ClientFrame, ServerFrame } from "../src/chat/connection.ts";
import type { Answer, api } from "../src/cluster/api.ts";

type MessageState = Answer<typeof api.message>;

const main = "11111111-1111-4111-8111-111111111111";
const usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const cost = { micros: 0, unpricedCalls: 0 };

/** A conversation on a fake connection. */
function conversation(
  lookUp: (id: string) => MessageState = () => assert.fail("nothing to look up"),
  options: { unasked?: boolean } = {},
) {
  const sent: ClientFrame[] = [];
  const events: SessionEvent[] = [];
  /** Turns in the order in which they took a message of ours or had an event. */
  const order: string[] = [];
  const talk = new Conversation(
    {
      conversation: "cli",
      sessions: ["main", "http:default:cli"],
      everything: false,
      ...options,
      lookUp: async (id) => lookUp(id),
      pause: async () => undefined,
    },
    {
      event: (_session, event) => {
        events.push(event);
        order.push(`${event.type} ${event.type === "message" ? "" : event.turnId}`);
      },
      taken: (_id, turnId) => order.push(`taken ${turnId}`),
      frame: () => undefined,
      connected: () => undefined,
      disconnected: () => undefined,
    },
  );
  talk.attach({ isUp: true, send: (frame) => sent.push(frame) });
  const frame = (each: ServerFrame): void => talk.handleFrame({ kind: "frame", frame: each });
  const event = (each: SessionEvent, session = main): void => talk.handleFrame({ kind: "event", session, event: each });
  const messages = () => sent.flatMap((each) => (each.type === "message" ? [each] : []));
  const subscribed = (): void => {
    frame({ type: "subscribed", session: main, key: "main", after: 7 });
    frame({ type: "subscribed", session: null, key: "http:default:cli", after: 0 });
  };
  const accept = (messageId: string, duplicate = false): void => {
    frame({ type: "accepted", id: messages().at(-1)?.id ?? "", messageId, sessionId: main, duplicate });
  };
  return { talk, sent, events, order, frame, event, messages, subscribed, accept };
}

const begun = (turnId: string, ...inboxIds: string[]): SessionEvent => ({
  type: "turn.started",
  turnId,
  inboxIds,
  attempt: 1,
});
const delta = (turnId: string, text: string): SessionEvent => ({
  type: "text.delta",
  turnId,
  step: 1,
  attempt: 1,
  text,
});
const done = (turnId: string, seq: number, text = "answer"): SessionEvent => ({
  type: "turn.finished",
  seq,
  turnId,
  state: "done",
  exitReason: "end_turn",
  text,
  usage,
  cost,
});
const stateOf = (turnId: string | null, state: MessageState["state"] = "claimed"): MessageState => ({
  state,
  sessionId: main,
  turn:
    turnId === null
      ? null
      : {
          turnId,
          sessionId: main,
          state: state === "done" ? "done" : "running",
          exitReason: state === "done" ? "end_turn" : null,
          text: state === "done" ? "answer" : null,
          usage,
          cost,
          modelSteps: 0,
          attempts: 1,
          startedAt: "",
          finishedAt: null,
        },
});

test("matches a message with its turn, and hides turns of other channels", async () => {
  const { talk, events, event, subscribed, accept } = conversation();
  talk.up();
  subscribed();
  const answering = talk.say("hi");
  event(begun("theirs", "m0"));
  event(delta("theirs", "not ours"));
  event(begun("ours", "m1")); // before the reply to the message itself
  accept("m1");
  event(delta("ours", "answ"));
  event(done("theirs", 8));
  event(done("ours", 9));
  assert.deepEqual(await answering, { state: "done", text: "answer" });
  assert.deepEqual(
    events.map((each) => ("turnId" in each ? each.turnId : "")),
    ["ours", "ours", "ours"],
  );
  assert.equal(talk.isBusy, false);
});

test("unsubscribes from the other candidate when the thread is known", () => {
  const { talk, sent, subscribed, accept } = conversation();
  talk.up();
  subscribed();
  void talk.say("hi");
  accept("m1");
  assert.deepEqual(
    sent.filter(({ type }) => type === "unsubscribe"),
    [{ type: "unsubscribe", session: "http:default:cli" }],
  );
});

test("resumes after the last received event when the connection was lost, without repeats", async () => {
  const { talk, sent, events, event, subscribed, accept } = conversation(() => stateOf("ours"));
  talk.up();
  subscribed();
  const answering = talk.say("hi");
  accept("m1");
  event(begun("ours", "m1"));
  const said: SessionEvent = {
    type: "message",
    seq: 8,
    message: { seq: 8, role: "assistant", turnId: "ours", parts: [], model: null, createdAt: "" },
  };
  event(said);
  talk.down("gone", 1);
  talk.up();
  assert.deepEqual(sent.at(-1), { type: "subscribe", session: main, after: 8 });
  event(said);
  event(done("ours", 9));
  await answering;
  assert.deepEqual(
    events.map(({ type }) => type),
    ["turn.started", "message", "turn.finished"],
  );
});

test("sends an unconfirmed message again with the same id", () => {
  const { talk, messages, subscribed } = conversation();
  talk.up();
  subscribed();
  void talk.say("hi");
  talk.down("gone", 1);
  talk.up();
  const [first, second] = messages();
  assert.equal(messages().length, 2);
  assert.deepEqual(first, second);
});

test("looks up the owner of a turn whose first event was lost", async () => {
  const { talk, events, event, subscribed, accept } = conversation(() => stateOf("ours"));
  talk.up();
  subscribed();
  const answering = talk.say("hi");
  accept("m1");
  event(done("ours", 9));
  assert.equal((await answering).state, "done");
  assert.equal(events.length, 1);
});

test("shows the end of a turn that ended before any event was received", async () => {
  const { talk, events, accept } = conversation(() => stateOf("ours", "done"));
  talk.up(); // broke before the session's position was received
  const answering = talk.say("hi");
  talk.down("gone", 1);
  talk.up();
  accept("m1", true);
  assert.deepEqual(await answering, { state: "done", text: "answer" });
  assert.deepEqual(
    events.map(({ type }) => type),
    ["turn.finished"],
  );
});

test("stops its own turn by id, or cancels queued messages when no turn has started", async () => {
  const { talk, sent, event, frame, subscribed, accept } = conversation(() => stateOf(null, "cancelled"));
  talk.up();
  subscribed();
  const first = talk.say("hi");
  accept("m1");
  talk.cancel();
  assert.deepEqual(sent.at(-1), { type: "cancel", session: main, queued: true });
  frame({ type: "cancelled", session: main, turnId: null, cancelledQueued: 1 });
  assert.equal((await first).state, "cancelled");

  void talk.say("again");
  accept("m2");
  event(begun("ours", "m2"));
  await Promise.resolve();
  talk.cancel();
  assert.deepEqual(sent.at(-1), { type: "cancel", session: main, queued: false, turnId: "ours" });
});

test("returns the gateway's answer to a command, and stops waiting after a refusal", async () => {
  const { talk, frame, messages } = conversation();
  talk.up();
  const command = talk.say("/help");
  frame({ type: "command", id: messages()[0]?.id ?? "", command: "/help", text: "Commands: …" });
  assert.deepEqual(await command, { state: "command", text: "Commands: …" });
  const refused = talk.say("x");
  frame({ type: "error", code: "message_too_large", message: "too large", id: messages()[1]?.id ?? "" });
  assert.deepEqual(await refused, { state: "refused", text: "too large" });
});

test("matches a message that joins a running turn with that turn", async () => {
  const chat = conversation((id) => stateOf(id === "m2" ? "t1" : null));
  chat.talk.up();
  chat.subscribed();
  const first = chat.talk.say("begin");
  chat.accept("m1");
  chat.event(begun("t1", "m1"));
  const second = chat.talk.say("and this", "steer");
  assert.equal(chat.messages().at(-1)?.mode, "steer");
  const from = {
    channel: "http",
    account: "default",
    conversation: "cli",
    contact: { id: "owner" },
    role: "owner" as const,
    origin: "user" as const,
  };
  const parts = [{ type: "text" as const, text: "and this" }];
  const message = { seq: 8, role: "user" as const, turnId: "t1", parts, model: null, createdAt: "", from };
  chat.event({ type: "message", seq: 8, message });
  chat.accept("m2");
  chat.event(done("t1", 9, "both"));
  assert.deepEqual((await first).text, "both");
  assert.deepEqual((await second).text, "both");
});

test("takes a message of the next turn after the end of the running one", async () => {
  const { talk, order, event, subscribed, accept } = conversation((id) => stateOf(id === "m2" ? "second" : "first"));
  talk.up();
  subscribed();
  void talk.say("one");
  accept("m1");
  event(begun("first", "m1"));
  const next = talk.say("two");
  accept("m2");
  event(done("first", 8));
  event(begun("second", "m2"));
  event(done("second", 9));
  await next;
  assert.deepEqual(order, [
    "taken first",
    "turn.started first",
    "turn.finished first",
    "taken second",
    "turn.started second",
    "turn.finished second",
  ]);
});

test("settles the answer to a question with its turn when the event of the resumed turn was lost", async () => {
  const { talk, event, subscribed, accept } = conversation(() => stateOf("ours"));
  talk.up();
  subscribed();
  const asking = talk.say("ask me");
  accept("m1");
  event(begun("ours", "m1"));
  const answering = talk.say("blue", "steer");
  event(done("ours", 9)); // before the reply to the message itself
  accept("m2");
  const outcome = { state: "done", text: "answer" };
  assert.deepEqual(await Promise.all([asking, answering]), [outcome, outcome]);
});

test("moves to the new session of its name and stops waiting for the previous one", async () => {
  const other = "22222222-2222-4222-8222-222222222222";
  const { talk, events, frame, event, messages, subscribed, accept } = conversation();
  talk.up();
  subscribed();
  const before = talk.say("something long");
  accept("m1");
  event(begun("t1", "m1"));
  frame({ type: "subscribed", session: other, key: "main", after: 3 });
  assert.equal((await before).state, "command");
  assert.equal(talk.isBusy, false);
  const answering = talk.say("hi");
  frame({ type: "accepted", id: messages().at(-1)?.id ?? "", messageId: "m2", sessionId: other, duplicate: false });
  event(begun("t2", "m2"), other);
  event(done("t2", 4, "in the new one"), other);
  assert.deepEqual(await answering, { state: "done", text: "in the new one" });
  assert.equal(events.at(-1)?.type, "turn.finished");
});

test("stops waiting for a message that a command cancelled", async () => {
  const { talk, frame, messages, subscribed, accept } = conversation(() => stateOf(null, "cancelled"));
  talk.up();
  subscribed();
  const waiting = talk.say("later");
  accept("m1");
  const command = talk.say("/queue cancel 1");
  frame({ type: "command", id: messages()[1]?.id ?? "", command: "/queue", text: "Taken back: later" });
  assert.equal((await command).state, "command");
  assert.equal((await waiting).state, "cancelled");
  assert.equal(talk.isBusy, false);
});

for (const unasked of [true, false]) {
  test(
    unasked ? "shows a sub-agent's report and its answer" : "hides a sub-agent's report from a single call",
    async () => {
      const chat = conversation(undefined, { unasked });
      chat.talk.up();
      chat.subscribed();
      const first = chat.talk.say("hi");
      chat.accept("m1");
      chat.event(begun("t1", "m1"));
      chat.event(done("t1", 8));
      await first;
      const from = {
        channel: "internal",
        account: "default",
        conversation: "child",
        contact: { id: "child" },
        role: "owner" as const,
        origin: "subagent" as const,
      };
      const parts = [{ type: "text" as const, text: "the report" }];
      const message = { seq: 9, role: "user" as const, turnId: "t2", parts, model: null, createdAt: "", from };
      chat.event({ type: "message", seq: 9, message });
      chat.event(begun("t2", "r1"));
      chat.event(done("t2", 10, "thanks"));
      await new Promise(setImmediate);
      const shown = chat.events.filter((event) => "turnId" in event && event.turnId === "t2");
      assert.equal(shown.length, unasked ? 2 : 0);
      assert.equal(chat.talk.isBusy, false);
    },
  );
}
