// What the gateways of one account send while the platform demands pauses: four replicas on one store.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import type { Bus } from "@parley/bus";
import { healthReports, sendPaused, store, type SendRates } from "@parley/contracts";
import { RateLimitedError, type OutboundPart, type SendOutcome } from "../src/channels/channel.ts";
import { SendPauses } from "../src/delivery/send-pauses.ts";
import { Platform } from "./support/platform.ts";
import { startGatewayStack, type GatewayStack } from "./support/stack.ts";

const replicas = ["a", "b", "c", "d"];
const chats = 40;
const textsPerChat = 3;
/** How long a call takes. */
const answerMs = 30;
/** What the platform demands. */
const pauseMs = 3_000;

describe("send pauses", () => {
  let stack: GatewayStack;
  let bus: Bus;
  before(async () => {
    stack = await startGatewayStack();
    bus = await stack.stack.bus("channel-gateway");
  });
  after(() => stack[Symbol.asyncDispose]());

  const partTo = (conversation: string): OutboundPart => ({
    address: { channel: "test", account: "direct", conversation },
    text: { text: "hello", plain: "hello", ranges: [] },
    idempotencyKey: randomUUID(),
    attempts: 0,
  });

  test("calls the platform for no claimed text after a pause that another replica was told", async () => {
    const calls: string[] = [];
    const limited: SendOutcome = { state: "retry", afterMs: 60_000, reason: "429", scope: "conversation" };
    const adapterOf = (name: string, outcome: SendOutcome) =>
      new Platform("direct").account({}, name, {
        send: async ({ address }) => {
          calls.push(`${name} ${address.conversation}`);
          return outcome;
        },
      }).adapter;
    const [one, two] = [adapterOf("one", limited), adapterOf("two", { state: "sent", providerMessageId: "1" })];
    const otherBus = await stack.stack.bus("channel-gateway");
    const [first, second] = [new SendPauses(bus, one), new SendPauses(otherBus, two)];
    // The server knows the subscription before the pause is published.
    await otherBus.flush();
    const signal = AbortSignal.timeout(60_000);
    const [limitedSender, otherSender] = [first.guard(one), second.guard(two)];

    await limitedSender.send(partTo("x"), signal);
    assert.ok(first.waitMs("x") > 0, "its own replica knows immediately");
    await pollUntil(async () => second.waitMs("x") > 0, "the other replica knows");
    const held = await otherSender.send(partTo("x"), signal);
    assert.ok(held.state === "retry" && held.held === true && held.afterMs > 50_000);
    assert.equal((await otherSender.send(partTo("y"), signal)).state, "sent", "other chats go on");

    await limitedSender.send(partTo("z"), signal);
    await pollUntil(async () => second.waitMs("y") > 0, "a second limited chat pauses the account");
    assert.equal((await otherSender.send(partTo("y"), signal)).state, "retry");
    assert.deepEqual(calls, ["one x", "two y", "one z"]);
    first.close();
    second.close();
  });

  test("pauses the account on every replica when the typing indicator is limited", async () => {
    const adapterOf = (name: string) =>
      new Platform("typing").account({}, name, {
        send: async () => ({ state: "sent", providerMessageId: "1" }),
        typing: () => Promise.reject(new RateLimitedError(60_000)),
      }).adapter;
    const [one, two] = [adapterOf("one"), adapterOf("two")];
    const otherBus = await stack.stack.bus("channel-gateway");
    const [first, second] = [new SendPauses(bus, one), new SendPauses(otherBus, two)];
    await otherBus.flush();

    await assert.rejects(first.guard(one).typing?.(partTo("x").address) ?? Promise.resolve(), RateLimitedError);
    await pollUntil(async () => second.waitMs("y") > 0, "the other replica pauses the account");
    await second.guard(two).typing?.(partTo("y").address);
    assert.equal((await first.guard(one).send(partTo("x"), AbortSignal.timeout(60_000))).state, "retry");
    first.close();
    second.close();
  });

  test("four replicas call within the rate, never during a pause, and send every text once", async () => {
    const rates: SendRates = {
      account: { burst: 20, everyMs: 20 },
      conversations: [{ pattern: "", burst: 5, everyMs: 50 }],
    };
    const calls: { atMs: number; replica: string; text: string }[] = [];
    const sent: string[] = [];
    const beganAtMs = performance.now();
    /** The first refusal, and what each replica received first. */
    let refusedAtMs: number | undefined;
    const toldAtMs = new Map<string, number>();
    const told = (replica: string) => {
      if (!toldAtMs.has(replica)) toldAtMs.set(replica, performance.now());
    };
    // A replica that answers a request which follows the hint has received the hint.
    const hinted = Promise.withResolvers<void>();
    const hint = bus.subscribe(sendPaused, {}, ({ account }) => (account === "storm" ? hinted.resolve() : undefined));
    await bus.flush();
    const allTold = hinted.promise.then(() =>
      pollUntil(async () => {
        const reports = await bus.gather(healthReports["channel-gateway"], {}, 200);
        for (const { replica } of reports) told(replica);
        return replicas.every((replica) => toldAtMs.has(replica));
      }, "all replicas to know the pause"),
    );
    const accountOn = (replica: string) => {
      const base = new Platform("storm").account({}, replica);
      const account = new Platform("storm").account({}, replica, {
        ownedConnection: false,
        capabilities: { ...base.adapter.capabilities, rates },
        send: async (part) => {
          const text = part.text?.plain ?? "";
          calls.push({ atMs: performance.now(), replica, text });
          await delay(answerMs);
          const now = performance.now();
          const paused = refusedAtMs !== undefined && now < refusedAtMs + pauseMs;
          if (sent.length < chats && !paused) {
            sent.push(text);
            return { state: "sent", providerMessageId: null };
          }
          if (refusedAtMs === undefined || paused) {
            refusedAtMs ??= now;
            told(replica);
            return { state: "retry", afterMs: pauseMs + 0.5, reason: "429", scope: "account" };
          }
          sent.push(text);
          return { state: "sent", providerMessageId: null };
        },
      });
      delete account.adapter.connect;
      return account;
    };
    await Promise.all(replicas.map((name) => stack.gateway({ name, overrides: { accounts: [accountOn(name)] } })));
    for (let number = 0; number < textsPerChat; number++)
      await Promise.all(
        Array.from({ length: chats }, (_, chat) =>
          bus.request(store.outboxPut, {
            opId: randomUUID(),
            outgoing: {
              address: { channel: "test", account: "storm", conversation: `chat-${chat}` },
              text: `chat-${chat} ${number}`,
              expiresInMs: 600_000,
            },
          }),
        ),
      );
    await pollUntil(async () => sent.length >= chats * textsPerChat, "every text");

    await allTold;
    hint.close();
    assert.ok(refusedAtMs !== undefined);
    const endsAtMs = refusedAtMs + pauseMs;
    const early = calls.filter(({ atMs, replica }) => atMs > (toldAtMs.get(replica) ?? 0) && atMs < endsAtMs);
    assert.deepEqual(early, [], "no call before Retry-After");
    for (const [index, { atMs }] of calls.entries())
      assert.ok(index + 1 <= 20 + 1 + (atMs - beganAtMs) / 20, "no call above the rate");
    assert.equal(sent.length, new Set(sent).size, "no text twice");
    for (let chat = 0; chat < chats; chat++) {
      const own = sent.filter((text) => text.startsWith(`chat-${chat} `));
      assert.deepEqual(
        own,
        Array.from({ length: textsPerChat }, (_, number) => `chat-${chat} ${number}`),
      );
    }
  });
});
