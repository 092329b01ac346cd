// Following the turn of a message, on a real bus.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { newId, sessionEvent, type SessionEvent } from "@parley/contracts";
import { Cleanup, openTestBus, startTestNats } from "@parley/testing";
import { EventHub } from "../src/live/event-hub.ts";
import { followTurn } from "../src/live/follow-turn.ts";
import { SessionDirectory } from "../src/live/session-directory.ts";

const cleanup = new Cleanup();
let gateway: Bus;
let leader: Bus;

before(async () => {
  const nats = await startTestNats(cleanup);
  [gateway, leader] = await Promise.all([
    openTestBus(nats, "channel-gateway", cleanup),
    openTestBus(nats, "agent-core", cleanup),
  ]);
});
after(() => cleanup[Symbol.asyncDispose]());

test("receives the first events of a new session's turn when they overtake the store's response", async () => {
  const live = new EventHub(gateway);
  cleanup.add(async () => live.close());
  const [sessionId, turnId, inboxId] = [newId(), newId(), newId()];
  const begun: SessionEvent[] = [
    { type: "turn.started", turnId, inboxIds: [inboxId], attempt: 1 },
    { type: "text.delta", turnId, step: 1, attempt: 1, text: "first" },
  ];
  const received: SessionEvent[] = [];
  const expected = live.expect(sessionId);
  const store = async () => {
    const arrived = Promise.withResolvers<void>();
    let missing = begun.length;
    const watch = live.watch(sessionId, () => --missing === 0 && arrived.resolve());
    await gateway.flush();
    for (const event of begun) leader.publish(sessionEvent, event, { session: sessionId });
    await arrived.promise;
    watch.close();
    expected.created();
    return { inboxId, sessionId, duplicate: false, same: true };
  };
  const ending = new AbortController();
  const deps = { bus: gateway, live, sessions: new SessionDirectory(gateway) };
  const listener = { kept: () => undefined, event: (event: SessionEvent) => void received.push(event) };
  const { end } = await followTurn(deps, "a new key", store, ending.signal, listener);
  ending.abort(new Error("seen"));
  await assert.rejects(end, /seen/);
  assert.deepEqual(received, begun);
});

test("leaves the live view when the caller has disconnected before its message was stored", async (t) => {
  const live = new EventHub(gateway);
  cleanup.add(async () => live.close());
  const closed = t.mock.fn();
  t.mock.method(live, "onRepair", () => ({ close: closed }));
  const deps = { bus: gateway, live, sessions: new SessionDirectory(gateway) };
  const store = async () => ({ inboxId: newId(), sessionId: newId(), duplicate: false, same: true });
  const { end } = await followTurn(deps, "another key", store, AbortSignal.abort(new Error("gone")));
  await assert.rejects(end, /gone/);
  assert.equal(closed.mock.callCount(), 1);
});
