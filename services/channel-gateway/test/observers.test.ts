// Observers: real posts to a real server, from gateways on a real bus and store. The test publishes the events of agent-core.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import type { Bus } from "@parley/bus";
import { ParleySettingsSchema, sessionEvent, type SessionEvent } from "@parley/contracts";
import { Cleanup, startStoreStack, type StoreStack } from "@parley/testing";
import fc from "fast-check";
import { z } from "zod";
import { ObserverQueue, formatBatch } from "../src/delivery/observer-queue.ts";
import { createObservers, observe } from "../src/delivery/observers.ts";
import { startReplica, type Replica } from "./support/stack.ts";

const started = (turnId: string): SessionEvent => ({ type: "turn.started", turnId, inboxIds: [], attempt: 1 });
const delta = (text: string): SessionEvent => ({ type: "text.delta", turnId: "t", step: 1, attempt: 1, text });

const BodySchema = z.object({
  dropped: z.number(),
  events: z.array(z.looseObject({ session: z.string(), type: z.string(), turnId: z.string() })),
});
type Body = z.infer<typeof BodySchema>;

describe("the queue of an observer", () => {
  // design: 000.11, switch.18
  test("holds a limited number of events in order and counts the others as dropped", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6 }),
        async (places, bursts) => {
          const batches = new ObserverQueue(places);
          let pushed = 0;
          let seen = 0;
          for (const burst of bursts) {
            for (let n = 0; n < burst; n++) batches.push("s", started(String(pushed++)));
            const batch = await batches.next(new AbortController().signal);
            const { events, dropped } = BodySchema.parse(JSON.parse(formatBatch(batch)));
            assert.ok(events.length <= places);
            const first = pushed - burst;
            assert.deepEqual(
              events.map(({ turnId }) => turnId),
              Array.from({ length: Math.min(burst, places) }, (_, n) => String(first + n)),
            );
            seen += events.length + dropped;
          }
          assert.equal(seen, pushed);
        },
      ),
    );
  });

  test("limits a batch to 1 MB, except for a single larger event", async () => {
    const batches = new ObserverQueue(10);
    const { signal } = new AbortController();
    for (const size of [2_000_000, 600_000, 600_000, 10]) batches.push("s", delta("x".repeat(size)));
    const sizes = [];
    for (let n = 0; n < 3; n++) sizes.push((await batches.next(signal)).events.length);
    assert.deepEqual(sizes, [1, 1, 2]);
  });

  test("counts the events of a failed post as dropped in the next batch", async () => {
    const batches = new ObserverQueue(1);
    const { signal } = new AbortController();
    batches.push("s", started("1"));
    batches.push("s", started("2"));
    batches.countAsDropped(await batches.next(signal));
    batches.push("s", started("3"));
    assert.equal((await batches.next(signal)).dropped, 2);
  });

  test("stops waiting for an event when the signal aborts", async () => {
    const control = new AbortController();
    const next = new ObserverQueue(1).next(control.signal);
    control.abort(new Error("enough"));
    await assert.rejects(next, /enough/);
  });
});

test("disables only the observer whose token is missing", () => {
  const { observers } = ParleySettingsSchema.parse({
    observers: [{ url: "http://127.0.0.1:1/", token_env: "PARLEY_CHANNEL_OBSERVER" }, { url: "http://127.0.0.1:2/" }],
  });
  const made = createObservers(observers, new Map());
  assert.deepEqual(
    made.observers.map(({ name }) => name),
    ["1"],
  );
  assert.equal(made.disabled[0]?.name, "observer:0");
  assert.match(made.disabled[0]?.reason ?? "", /PARLEY_CHANNEL_OBSERVER/);
});

describe("an observer", () => {
  const cleanup = new Cleanup();
  let stack: StoreStack;
  let core: Bus;
  let url: string;
  /** How a test answers the next post. */
  let answer: (body: Body, response: ServerResponse, headers: IncomingHttpHeaders) => void;

  before(async () => {
    stack = await startStoreStack(cleanup);
    core = await stack.bus("agent-core");
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        answer(BodySchema.parse(JSON.parse(Buffer.concat(chunks).toString("utf8"))), response, request.headers);
      });
    });
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => {
        const bound = server.address();
        resolve(typeof bound === "object" && bound !== null ? bound.port : 0);
      });
    });
    cleanup.add(async () => {
      server.closeAllConnections();
      server.close();
    });
    url = `http://127.0.0.1:${port}/events`;
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const say = (session: string, event: SessionEvent) => core.publish(sessionEvent, event, { session });

  /** A gateway with one observer. */
  async function gateway(local: Cleanup, more: Record<string, unknown> = {}): Promise<Replica> {
    const settings = ParleySettingsSchema.parse({
      observers: [{ url, token_env: "PARLEY_CHANNEL_OBSERVER", ...more }],
    });
    const channelSecrets = new Map([["PARLEY_CHANNEL_OBSERVER", "the-observers-token"]]);
    return startReplica(stack.nats, local, { config: { settings, channelSecrets } });
  }

  /** Publishes events until the observer receives one: then the lease is held, the subscription exists, and no event is pending. */
  async function heard(): Promise<void> {
    const first = Promise.withResolvers<void>();
    const last = Promise.withResolvers<void>();
    answer = ({ events }, response) => {
      response.end();
      first.resolve();
      if (events.some(({ turnId }) => turnId === "last")) last.resolve();
    };
    const knocking = setInterval(() => say("knock", started("knock")), 20);
    await first.promise;
    clearInterval(knocking);
    say("knock", started("last"));
    await last.promise;
  }

  /** All posted events up to one of this turn. */
  async function until(turnId: string): Promise<{ events: Body["events"]; headers: IncomingHttpHeaders }> {
    const done = Promise.withResolvers<{ events: Body["events"]; headers: IncomingHttpHeaders }>();
    const all: Body["events"] = [];
    answer = ({ events }, response, headers) => {
      response.end();
      all.push(...events);
      if (events.some((event) => event.turnId === turnId)) done.resolve({ events: all, headers });
    };
    return done.promise;
  }

  const metric = async (replica: Replica, result: string): Promise<number> => {
    const text = await replica.service.metrics.registry.metrics();
    const name = `parley_observer_events_total{observer="0",result="${result}"`;
    return Number(
      text
        .split("\n")
        .find((line) => line.startsWith(name))
        ?.split(" ")
        .at(-1) ?? 0,
    );
  };

  // design: 002.24
  test("receives the events of every session in order, without deltas", async () => {
    await using local = new Cleanup();
    const replica = await gateway(local);
    await heard();
    const told = until("3");
    say("s1", started("1"));
    say("s1", delta("piece"));
    say("s.2", started("2"));
    say("s1", started("3"));
    const { events, headers } = await told;
    assert.deepEqual(
      events.map(({ session, turnId }) => [session, turnId]),
      [
        ["s1", "1"],
        ["s.2", "2"],
        ["s1", "3"],
      ],
    );
    assert.equal(headers.authorization, "Bearer the-observers-token");
    // These three, at least one "knock" event and the "last" event.
    await pollUntil(async () => (await metric(replica, "sent")) >= 5, "the count of sent events");
    assert.equal(await metric(replica, "dropped"), 0);
  });

  // design: 000.11, 004.17, switch.15
  test("loses counted events when it is slow, without delaying others", async () => {
    await using local = new Cleanup();
    const replica = await gateway(local, { buffer: 4, timeout_seconds: 30 });
    await heard();
    // On a busy machine the first events may have been too many.
    const before = await metric(replica, "dropped");
    const held = Promise.withResolvers<ServerResponse>();
    answer = (_, response) => held.resolve(response);
    say("s", started("held"));
    const response = await held.promise;
    for (let n = 1; n <= 100; n++) say("s", started(String(n)));
    await pollUntil(async () => (await metric(replica, "dropped")) >= before + 96, "the count of dropped events");
    const next = Promise.withResolvers<Body>();
    answer = (body, late) => {
      late.end();
      next.resolve(body);
    };
    response.end();
    const { dropped, events } = await next.promise;
    assert.equal(dropped, 96);
    assert.deepEqual(
      events.map(({ turnId }) => turnId),
      ["1", "2", "3", "4"],
    );
  });

  // design: 000.11, 004.17
  test("is unsubscribed after repeated failures", async () => {
    const bus = await stack.bus("channel-gateway");
    const settings = { url, buffer: 64, deltas: false, timeout_seconds: 5, max_failures: 2 };
    let posts = 0;
    let dropped = 0;
    const control = new AbortController();
    answer = (_, response) => {
      posts += 1;
      response.writeHead(500).end();
      // The next event after this failure.
      say("s", started("next"));
    };
    const observing = observe(
      bus,
      { name: "0", settings, token: undefined },
      (result, by) => (dropped += result === "dropped" ? by : 0),
      control.signal,
    );
    await bus.flush();
    say("s", started("first"));
    await assert.rejects(observing, /failed 2 posts in a row: status 500/);
    assert.equal(posts, 2);
    assert.ok(dropped >= 2);
    const before = dropped;
    for (let n = 0; n < 10; n++) say("s", started(String(n)));
    await core.flush();
    await bus.flush();
    assert.deepEqual([posts, dropped], [2, before], "no events after the unsubscription");
  });

  test("receives events again after it has recovered", async () => {
    await using local = new Cleanup();
    await gateway(local, { max_failures: 1 });
    await heard();
    const refused = Promise.withResolvers<void>();
    answer = (_, response) => {
      response.writeHead(503).end();
      refused.resolve();
    };
    say("s", started("refused"));
    await refused.promise;
    await heard();
  });

  test("receives each event once, from one gateway, and another gateway takes over", async () => {
    await using local = new Cleanup();
    const replicas = [await gateway(local), await gateway(local)];
    await heard();
    const told = until("20");
    for (let n = 1; n <= 20; n++) say("s", started(String(n)));
    const { events } = await told;
    const sent = await Promise.all(replicas.map((replica) => metric(replica, "sent")));
    assert.equal(sent.filter((count) => count > 0).length, 1);
    assert.deepEqual(
      events.map(({ turnId }) => Number(turnId)),
      Array.from({ length: 20 }, (_, n) => n + 1),
    );
    await replicas[0]?.close();
    await heard();
  });
});
