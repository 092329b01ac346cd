// Every watcher receives every durable event once and in order, for any lost events and any timing of the store.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bus } from "@parley/bus";
import { noCost, noUsage, store, WireError, type RequestContract, type SessionEvent } from "@parley/contracts";
import fc from "fast-check";
import { subscribe } from "../src/live/subscribe.ts";
import { EventHub, type EventListener, type RepairReason } from "../src/live/event-hub.ts";
import { SessionStreams, type StreamDeps } from "../src/live/session-stream.ts";

const sessionId = "s";

function durable(seq: number): SessionEvent {
  return {
    type: "turn.finished",
    seq,
    turnId: `t-${seq}`,
    state: "done",
    exitReason: "end_turn",
    text: "x",
    usage: noUsage,
    cost: noCost,
  };
}

/** A store with a growing log and a bus that may lose events; the scheduler decides when responses arrive. */
class Model {
  seq = 0;
  readonly #scheduler: fc.Scheduler;
  readonly #listeners = new Set<EventListener>();
  readonly #repairs = new Set<(reason: RepairReason) => void>();
  readonly deps: StreamDeps;

  constructor(scheduler: fc.Scheduler) {
    this.#scheduler = scheduler;
    this.deps = {
      bus: {
        request: (async (contract: RequestContract, input: { afterSeq: number; limit: number }) => {
          // The response contains what is committed when the store handles the request, and arrives later.
          await scheduler.schedule(Promise.resolve(), "request");
          const answer = this.#answer(contract, input);
          await scheduler.schedule(Promise.resolve(), "response");
          return answer;
        }) as StreamDeps["bus"]["request"],
      },
      live: {
        watch: (_session, listener) => {
          this.#listeners.add(listener);
          return { close: () => this.#listeners.delete(listener) };
        },
        hasBeginning: () => false,
        onRepair: (callback) => {
          this.#repairs.add(callback);
          return { close: () => this.#repairs.delete(callback) };
        },
      },
    };
  }

  /** Commits the next event and publishes it unless it is lost; published events arrive in order. */
  append(lost: boolean): void {
    const event = durable(++this.seq);
    if (!lost) for (const listener of this.#listeners) listener(event);
  }

  repair(): void {
    for (const callback of this.#repairs) callback("changed");
  }

  async settle(): Promise<void> {
    await this.#scheduler.waitIdle();
  }

  #answer(contract: RequestContract, { afterSeq, limit }: { afterSeq: number; limit: number }) {
    if (contract === (store.sessionGet as RequestContract)) {
      return { session: { sessionId, key: "main", seq: this.seq, runningTurnId: null } };
    }
    if (contract !== (store.eventList as RequestContract))
      throw new WireError("INTERNAL", "not requested in this test");
    const pageSize = Math.min(limit, 3);
    const events = Array.from({ length: Math.min(pageSize, this.seq - afterSeq) }, (_, index) =>
      durable(afterSeq + index + 1),
    );
    return { events, more: afterSeq + events.length < this.seq };
  }
}

// design: 002.28
test("sends every durable event after a watcher's position once and in order", async () => {
  const happening = fc.oneof(
    { weight: 6, arbitrary: fc.record({ what: fc.constant("append" as const), lost: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ what: fc.constant("watch" as const), after: fc.option(fc.nat({ max: 30 })) }) },
    { weight: 1, arbitrary: fc.constant({ what: "repair" as const }) },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(happening, { minLength: 10, maxLength: 60, size: "max" }),
      async (scheduler, script) => {
        const model = new Model(scheduler);
        const deps = { bus: model.deps.bus, streams: new SessionStreams(model.deps) };
        const watchers: { seqs: number[]; from: number | undefined }[] = [];
        const watch = async (after: number | null) => {
          const watcher: (typeof watchers)[number] = { seqs: [], from: undefined };
          watchers.push(watcher);
          await subscribe(deps, sessionId, after ?? undefined, {
            begin: (from) => {
              watcher.from = from;
            },
            send: ({ seq }) => {
              if (seq !== undefined) watcher.seqs.push(seq);
            },
            fail: (error) => assert.fail(String(error)),
          });
        };
        void watch(0);
        const steps = scheduler.scheduleSequence(
          script.map((step) => ({
            label: step.what,
            builder: async () => {
              if (step.what === "append") model.append(step.lost);
              else if (step.what === "repair") model.repair();
              else void watch(step.after);
            },
          })),
        );
        await scheduler.waitFor(steps.task);
        await model.settle();
        model.repair();
        await model.settle();
        for (const { from, seqs } of watchers) {
          assert.ok(from !== undefined);
          assert.deepEqual(
            seqs,
            Array.from({ length: model.seq - from }, (_, index) => from + index + 1),
          );
        }
      },
    ),
    { numRuns: 100 },
  );
});

test("sends live events that arrive while the stream opens", async () => {
  const answer = Promise.withResolvers<void>();
  let publish: EventListener | undefined;
  const streams = new SessionStreams({
    bus: {
      request: (async () => {
        await answer.promise;
        return { session: { sessionId, key: "main", seq: 1, runningTurnId: "t-2" } };
      }) as StreamDeps["bus"]["request"],
    },
    live: {
      watch: (_session, listener) => {
        publish = listener;
        return { close: () => undefined };
      },
      hasBeginning: () => false,
      onRepair: () => ({ close: () => undefined }),
    },
  });
  const bus = { request: async () => assert.fail("nothing was missed") } as unknown as StreamDeps["bus"];
  const received: (string | undefined)[] = [];
  const following = subscribe({ bus, streams }, sessionId, undefined, {
    begin: () => undefined,
    send: (frame) => received.push(frame.event.type),
    fail: (error) => assert.fail(String(error)),
  });
  publish?.({ type: "text.delta", turnId: "t-2", text: "early" } as SessionEvent);
  answer.resolve();
  const joined = await following;
  assert.deepEqual(received, ["text.delta"]);
  joined.close();
});

test("sends all live events of an expected session when the watcher joins after its turn has started", async (t) => {
  let publish: EventListener | undefined;
  const bus = {
    connected: true,
    subscribe: (_contract: unknown, params: { session?: string }, handle: EventListener) => {
      if (params.session !== undefined) publish = handle;
      return { close: () => undefined };
    },
    request: async () => assert.fail("nothing was missed"),
  } as unknown as Bus;
  const live = new EventHub(bus);
  t.after(() => live.close());
  live.expect(sessionId);
  const started: SessionEvent = { type: "turn.started", turnId: "t-1", inboxIds: ["m-1"], attempt: 1 };
  const delta: SessionEvent = { type: "text.delta", turnId: "t-1", step: 1, attempt: 1, text: "x" };
  publish?.(started);
  publish?.(delta);
  const streams = new SessionStreams({ bus, live });
  const received: string[][] = [[], []];
  const watcher = (index: number) => ({
    begin: () => undefined,
    send: ({ event }: { event: SessionEvent }) => received[index]?.push(event.type),
    fail: (error: unknown) => assert.fail(String(error)),
  });
  const first = await subscribe({ bus, streams }, sessionId, 0, watcher(0));
  publish?.(durable(1));
  const second = live.watch(sessionId, (event) => received[1]?.push(event.type), true);
  for (const watch of [first, second]) watch.close();
  const all = ["turn.started", "text.delta", "turn.finished"];
  assert.deepEqual(received, [all, all]);
});
