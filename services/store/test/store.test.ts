// The store's guarantees, on a real PostgreSQL and a real bus, in the roles that may send the requests.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { outboxReady, store, textOf, WireError, type InboundMessage, type InputOf } from "@parley/contracts";
import type { Bus } from "@parley/bus";
import { Cleanup, pollUntil, type StoreStack } from "@parley/testing";
import { Client } from "pg";
import { openDatabase, withClient } from "../src/db/database.ts";
import { hashOf } from "../src/grants.ts";
import { deleteExpired } from "../src/retention/retention.ts";
import { failsWith, inbound, openStoreFixture, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let stack: StoreStack;
let gateway: Bus;
let core: Bus;
let runner: Bus;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ stack, gateway, core, runner } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

const put = (sessionKey: string, overrides: Partial<InboundMessage> = {}) => fixture.put(sessionKey, overrides);
const started = (sessionId: string) => fixture.started(sessionId);

async function claim(sessionId: string, overrides: Partial<InputOf<typeof store.turnClaim>> = {}) {
  return core.request(store.turnClaim, { ...fixture.fenced(), sessionId, knownSeq: 0, maxClaims: 5, ...overrides });
}

const step = (turnId: string, n: number, overrides: Partial<InputOf<typeof store.stepCommit>> = {}) =>
  stepOf(fixture.fenced(), turnId, n, overrides);

describe("inbox", () => {
  // design: 004.24
  test("a redelivered message is one row, also with concurrent deliveries", async () => {
    const message = inbound();
    const puts = await Promise.all(
      Array.from({ length: 20 }, () => gateway.request(store.inboxPut, { message, sessionKey: "redelivered" })),
    );
    assert.equal(new Set(puts.map((each) => each.inboxId)).size, 1);
    assert.equal(puts.filter((each) => !each.duplicate).length, 1);
  });

  test("a duplicate reports whether its content equals the stored one", async () => {
    const externalId = randomUUID();
    const parts = [{ type: "text" as const, text: "a\u0000\ud800" }];
    const said = await put("same", { externalId, parts });
    const again = await put("same", { externalId, parts, contact: { id: "7", name: "A new name" } });
    const other = await put("same", { externalId, parts: [...parts, { type: "text", text: "more" }] });
    assert.deepEqual([said.duplicate, said.same], [false, true]);
    assert.deepEqual([again.duplicate, again.same], [true, true]);
    assert.deepEqual([other.duplicate, other.same], [true, false]);
    assert.deepEqual([again.inboxId, other.inboxId], [said.inboxId, said.inboxId]);
  });

  test("a message with a known content is a duplicate under any id within the time, and new after it", async () => {
    const send = (content: string) =>
      gateway.request(store.inboxPut, {
        message: inbound(),
        sessionKey: "content",
        content: { id: content, sameWithinMs: 60_000 },
      });
    const first = await send("one");
    const again = await send("one");
    assert.deepEqual([again.inboxId, again.duplicate, again.same], [first.inboxId, true, true]);
    assert.equal((await send("two")).duplicate, false);
    await query("UPDATE parley.inbox SET received_at = now() - interval '61 seconds' WHERE id = $1", [first.inboxId]);
    assert.equal((await send("one")).duplicate, false);
  });

  test("NUL and lone surrogates are preserved", async () => {
    const text = "a\u0000b\ud800c\udfff \u{1F600}";
    const { sessionId } = await put("strange", { parts: [{ type: "text", text }] });
    const claimed = await claim(sessionId);
    assert.equal(claimed.status, "started");
    assert.deepEqual(claimed.messages[0]?.parts, [{ type: "text", text }]);
    assert.deepEqual(claimed.turn.replyTo, inbound().replyTo);
  });

  test("a message with an old fence is refused and its cursor is not saved", async () => {
    const lease = { name: "telegram:fenced", owner: "a", ttlMs: 60_000 };
    const first = await gateway.request(store.leaseAcquire, lease);
    const second = await gateway.request(store.leaseAcquire, lease);
    assert.ok(second.fence > first.fence);
    const position = { name: lease.name, fence: first.fence, cursor: "10" };
    await assert.rejects(
      gateway.request(store.inboxPut, { message: inbound(), sessionKey: "fenced", lease: position }),
      failsWith("FENCED"),
    );
    await gateway.request(store.inboxPut, {
      message: inbound(),
      sessionKey: "fenced",
      lease: { ...position, fence: second.fence, cursor: "11" },
    });
    assert.equal((await gateway.request(store.leaseAcquire, lease)).cursor, "11");
  });

  test("a connection saves no cursor when its account is changed to another bot", async () => {
    const settings = { owners: [], allow_from: [], groups: [] };
    const change = (identity: string) =>
      gateway.request(store.accountPut, { channel: "telegram", account: "changed", settings, identity, by: "owner" });
    const lease = { name: "telegram:changed", owner: "a", ttlMs: 60_000 };
    await change("@one");
    const { fence } = await gateway.request(store.leaseAcquire, lease);
    const save = () => gateway.request(store.leaseCheckpoint, { name: lease.name, fence, cursor: "10" });
    await save();
    await change("@one");
    await save();
    await change("@two");
    await assert.rejects(save(), failsWith("FENCED"));
    assert.equal((await gateway.request(store.leaseAcquire, { ...lease, owner: "b" })).cursor, null);
    await gateway.request(store.accountRemove, { channel: "telegram", account: "changed" });
  });
});

describe("turns", () => {
  test("rows are claimed by priority, then in order of arrival", async () => {
    const { sessionId } = await put("ordered", { origin: "webhook", parts: [{ type: "text", text: "hook" }] });
    for (const text of ["first", "second"]) await put("ordered", { parts: [{ type: "text", text }] });
    const texts: string[] = [];
    for (let i = 0; i < 3; i++) {
      const claimed = await claim(sessionId);
      assert.equal(claimed.status, "started");
      const part = claimed.messages.at(-1)?.parts[0];
      texts.push(part?.type === "text" ? part.text : "");
      await core.request(store.stepCommit, step(claimed.turn.turnId, 1));
    }
    assert.deepEqual(texts, ["first", "second", "hook"]);
    assert.equal((await claim(sessionId)).status, "empty");
  });

  // design: 000.43
  test("rows of every origin are claimed in order of arrival when the order is `arrival`", async () => {
    const arrived = ["heartbeat", "cron", "webhook", "process", "subagent", "user"] as const;
    for (const origin of arrived) await put("arrived", { origin, parts: [{ type: "text", text: origin }] });
    const session = await gateway.request(store.sessionGet, { key: "arrived" });
    const texts: string[] = [];
    for (const _ of arrived) {
      const claimed = await claim(session.session?.sessionId ?? "", { order: "arrival" });
      assert.equal(claimed.status, "started");
      texts.push(...claimed.messages.slice(-1).map(({ parts }) => textOf(parts)));
      await core.request(store.stepCommit, step(claimed.turn.turnId, 1));
    }
    assert.deepEqual(texts, arrived);
  });

  // design: 004.33, 003.30c
  test("a session has one running turn with concurrent claims: one starts it, others resume it", async () => {
    const { sessionId } = await put("crowded");
    await put("crowded");
    const claims = await Promise.all(Array.from({ length: 4 }, () => claim(sessionId)));
    const turns = claims.map((each) =>
      each.status === "started" || each.status === "resumed" || each.status === "dead" ? each : undefined,
    );
    assert.equal(turns.filter((each) => each?.status === "started").length, 1);
    const ids = turns.flatMap((each) => (each !== undefined && "turn" in each ? [each.turn.turnId] : []));
    assert.equal(new Set(ids).size, 1);
  });

  test("a repeated operation id claims the same turn", async () => {
    const { sessionId } = await put("retried");
    const opId = randomUUID();
    const [first, again] = [await claim(sessionId, { opId }), await claim(sessionId, { opId })];
    assert.equal(first.status, "started");
    assert.equal(again.status, "started");
    assert.equal(again.turn.turnId, first.turn.turnId);
    assert.deepEqual(again.messages, first.messages);
  });

  test("a claim returns only messages that are new to the leader", async () => {
    const { sessionId } = await put("known");
    const turn = await started(sessionId);
    const { messageSeq, finishSeq } = await core.request(store.stepCommit, step(turn.turnId, 1));
    assert.equal(finishSeq, messageSeq + 1);
    await put("known", { parts: [{ type: "text", text: "next" }] });
    const next = await claim(sessionId, { knownSeq: finishSeq ?? 0 });
    assert.equal(next.status, "started");
    assert.equal(next.messages.length, 1);
    assert.equal(next.gap, false);
  });

  test("a turn claimed too often ends as dead, with a notice to its user", async () => {
    const { sessionId, inboxId } = await put("poison");
    await started(sessionId);
    for (let attempt = 2; attempt <= 5; attempt++) {
      await fixture.takeOver();
      assert.equal((await claim(sessionId)).status, "resumed");
    }
    await fixture.takeOver();
    assert.equal((await claim(sessionId)).status, "dead");
    const { state, turn } = await gateway.request(store.inboxGet, { inboxId });
    assert.equal(state, "dead");
    assert.equal(turn?.state, "dead");
    const rows = await outboxOf(turn.turnId);
    assert.equal(rows.length, 1);
  });
});

describe("steps", () => {
  // design: switch.10
  test("a repeated operation id commits one message and one answer", async () => {
    const { sessionId } = await put("twice");
    const turn = await started(sessionId);
    const commit = step(turn.turnId, 1, {
      outgoing: [
        { address: { channel: "telegram", account: "main", conversation: "42" }, text: "answer", expiresInMs: 60_000 },
      ],
    });
    const answers = await Promise.all([1, 2, 3].map(() => core.request(store.stepCommit, commit)));
    assert.deepEqual(answers[1], answers[0]);
    assert.deepEqual(answers[2], answers[0]);
    assert.equal((await outboxOf(turn.turnId)).length, 1);
    const { messages } = await core.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 10 });
    assert.deepEqual(
      messages.map((each) => each.role),
      ["user", "assistant"],
    );
  });

  test("a repeated step without texts to send is committed once, and returns its first result", async () => {
    const { sessionId } = await put("twice, without texts");
    const turn = await started(sessionId);
    const commit = step(turn.turnId, 1);
    const [answer, ...others] = await Promise.all([1, 2, 3].map(() => core.request(store.stepCommit, commit)));
    for (const other of others) assert.deepEqual(other, answer);
    const { messages } = await core.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 10 });
    assert.equal(messages.length, 2);
    // As earlier releases stored it.
    await query("UPDATE parley.ops SET result = $2 WHERE op_id = $1", [commit.opId, JSON.stringify(answer)]);
    assert.deepEqual(await core.request(store.stepCommit, commit), answer);
  });

  test("tool results become one message in call order, from the settled steps", async () => {
    const { sessionId } = await put("tools");
    const turn = await started(sessionId);
    const calls = ["a", "b"].map((id) => ({
      callId: id,
      tool: "read",
      class: "pure" as const,
      input: `{"n":1.0,"10":"\\ud800"}`,
    }));
    await core.request(
      store.stepCommit,
      step(turn.turnId, 1, {
        parts: calls.map((call) => ({ type: "tool_call", id: call.callId, name: call.tool, input: call.input })),
        toolCalls: calls,
        finish: null,
      }),
    );
    await assert.rejects(core.request(store.stepCommit, step(turn.turnId, 4, { results: 2 })), failsWith("CONFLICT"));
    for (const n of [3, 2]) await settle(turn.turnId, n, n === 2 ? "a" : "b");
    await core.request(store.stepCommit, step(turn.turnId, 4, { results: 2 }));
    const { messages } = await core.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 10 });
    assert.deepEqual(
      messages.map((each) => each.role),
      ["user", "assistant", "tool", "assistant"],
    );
    assert.deepEqual(messages[1]?.parts[0], { type: "tool_call", id: "a", name: "read", input: calls[0]?.input });
    assert.deepEqual(
      messages[2]?.parts.map((part) => (part.type === "tool_result" ? part.id : "")),
      ["a", "b"],
    );
  });

  // design: 000.8c
  test("a result that arrives after the stop is kept, and none replaces the end of a cancelled call", async () => {
    const { turnId, sessionId } = await turnWithCall("stopped", "once");
    await claimStep({ sessionId, turnId });
    const stop = { sessionId, queued: false };
    assert.deepEqual((await gateway.request(store.turnCancel, stop)).turns.length, 1);
    await settle(turnId, 2, "call", "finished after the stop");
    await finishCancelled(turnId);
    const { turnId: cancelled, sessionId: other } = await turnWithCall("stopped-first", "once");
    await claimStep({ sessionId: other, turnId: cancelled });
    await finishCancelled(cancelled);
    await settle(cancelled, 2, "call", "too late").catch(() => undefined);
    const resultsIn = async (id: string) => {
      const { messages } = await gateway.request(store.sessionMessages, { sessionId: id, afterSeq: 0, limit: 10 });
      return messages.flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === "tool_result" ? part.content : [])),
      );
    };
    assert.deepEqual(
      [await resultsIn(sessionId), await resultsIn(other)],
      [["finished after the stop"], ["Cancelled"]],
    );
  });

  test("a tool of class once is granted once, and its first settlement counts", async () => {
    const { turnId, sessionId } = await turnWithCall("once", "once");
    const grants = await Promise.all(Array.from({ length: 5 }, () => claimStep({ sessionId, turnId })));
    assert.equal(grants.filter((each) => each.granted).length, 1);
    await settle(turnId, 2, "call", "first");
    const { step: late } = await settle(turnId, 2, "call", "second");
    assert.equal(late.result?.content, "first");
  });

  test("a takeover that arrives late changes nothing when another replica has taken over since", async () => {
    const { epoch } = fixture;
    const acquire = (after: number) =>
      core.request(store.leadershipAcquire, { opId: randomUUID(), holder: "late", after });
    await fixture.takeOver();
    assert.deepEqual(await acquire(epoch), { epoch: fixture.epoch, unchanged: true });
    // The leader still leads: a request with a stale epoch would be rejected.
    await core.request(store.inboxPending, { epoch: fixture.epoch, limit: 1 });
    assert.deepEqual(await acquire(fixture.epoch), { epoch: fixture.epoch + 1 });
    await fixture.takeOver();
  });

  test("a tool is not granted to a stale leader", async () => {
    const { turnId, sessionId } = await turnWithCall("stale-tool", "once");
    const old = fixture.epoch;
    await fixture.takeOver();
    await assert.rejects(claimStep({ sessionId, turnId }, old), failsWith("STALE_EPOCH"));
  });

  test("a turn resumed by the next leader has its open calls with their results", async () => {
    const { turnId, sessionId } = await turnWithCall("resume", "once");
    await claimStep({ sessionId, turnId });
    await fixture.takeOver();
    const pending = await core.request(store.inboxPending, { epoch: fixture.epoch, limit: 100 });
    assert.ok(pending.sessions.some((each) => each.sessionId === sessionId && each.resume));
    const claimed = await claim(sessionId);
    assert.equal(claimed.status, "resumed");
    assert.equal(claimed.turn.attempt, 2);
    assert.equal(claimed.turn.nextStep, 3);
    assert.deepEqual(
      claimed.turn.openSteps.map((each) => each.state),
      ["running"],
    );
  });

  test("a turn that ends with open calls has a result for each of them", async () => {
    const { turnId, sessionId } = await turnWithCall("ended", "once");
    await finishCancelled(turnId);
    const { events } = await gateway.request(store.eventList, { sessionId, afterSeq: 0, limit: 100 });
    assert.deepEqual(
      events.map((each) => (each.type === "message" ? each.message.role : each.type)),
      ["user", "assistant", "tool", "turn.finished"],
    );
    assert.deepEqual(
      events.map((each) => each.seq),
      [1, 2, 3, 4],
    );
    const usage = events.map((each) => each.type === "message" && each.usage?.outputTokens);
    assert.deepEqual(usage, [undefined, 5, undefined, false]);
  });
});

describe("fencing", () => {
  test("no write of an earlier epoch commits after the takeover, under load", async () => {
    const { sessionId } = await put("fence-load");
    const turn = await started(sessionId);
    let last = 0;
    let n = 1;
    const old = fixture.epoch;
    const writing = (async () => {
      for (;;) {
        try {
          await core.request(store.stepCommit, step(turn.turnId, n, { epoch: old, finish: null }));
          n += 1;
          last = performance.now();
        } catch (error) {
          if (WireError.is(error, "STALE_EPOCH")) return;
          throw error;
        }
      }
    })();
    const [raised] = await Promise.all([fixture.takeOver(), writing]);
    assert.equal(raised, old + 1);
    assert.ok(n > 1 || last === 0);
    const stale = await query("SELECT count(*)::int AS n FROM parley.steps WHERE turn_id = $1 AND epoch > $2", [
      turn.turnId,
      old,
    ]);
    assert.deepEqual(stale, [{ n: 0 }]);
  });

  test("the service's role cannot change the schema", async () => {
    const client = new Client({ connectionString: stack.postgres.storeUrl });
    await client.connect();
    try {
      for (const ddl of [
        "CREATE TABLE parley.x ()",
        "CREATE TABLE public.x ()",
        "ALTER TABLE parley.turns ADD x int",
        "DROP TABLE parley.ops",
      ]) {
        await assert.rejects(client.query(ddl), /permission denied|must be owner/);
      }
    } finally {
      await client.end();
    }
  });
});

describe("outbox", () => {
  const owner = { replica: "gateway-1", incarnation: "one" };
  const claimOutbox = (account: string, overrides: Partial<InputOf<typeof store.outboxClaim>> = {}) =>
    gateway.request(store.outboxClaim, {
      opId: randomUUID(),
      owner,
      channel: "telegram",
      account,
      deduplicates: false,
      limit: 10,
      claimMs: 60_000,
      ...overrides,
    });
  const queue = (account: string, conversation: string, text: string) =>
    gateway.request(store.outboxPut, {
      opId: randomUUID(),
      outgoing: { address: { channel: "telegram", account, conversation }, text, expiresInMs: 60_000 },
    });

  test("texts of a conversation are claimed one at a time and in order, also by two replicas", async () => {
    for (const text of ["1", "2", "3"]) await queue("order", "c", text);
    await queue("order", "d", "other");
    const [mine, other] = await Promise.all([
      claimOutbox("order"),
      claimOutbox("order", { owner: { replica: "gateway-2", incarnation: "two" } }),
    ]);
    const first = [...mine.rows, ...other.rows];
    assert.deepEqual(first.map((row) => row.text).sort(), ["1", "other"]);
    const row = first.find((each) => each.text === "1");
    assert.ok(row);
    const holder = mine.rows.includes(row) ? owner : { replica: "gateway-2", incarnation: "two" };
    await gateway.request(store.outboxSettle, {
      opId: randomUUID(),
      outboxId: row.outboxId,
      owner: holder,
      outcome: { state: "sent", providerMessageId: "9" },
    });
    assert.deepEqual(
      (await claimOutbox("order")).rows.map((each) => each.text),
      ["2"],
    );
  });

  test("claims only as many long texts as fit into a reply", async () => {
    for (const conversation of ["a", "b", "c", "d"]) await queue("large", conversation, "x".repeat(150_000));
    assert.equal((await claimOutbox("large")).rows.length, 2);
    assert.equal((await claimOutbox("large")).rows.length, 2);
  });

  test("a crashed sender's text is unknown, and sent again only where the platform deduplicates", async () => {
    for (const account of ["plain", "dedup"]) {
      const { outboxId } = await queue(account, "c", "text");
      assert.equal((await claimOutbox(account)).rows.length, 1);
      const again = await claimOutbox(account, {
        owner: { ...owner, incarnation: "reborn" },
        deduplicates: account === "dedup",
      });
      const { state } = await gateway.request(store.outboxGet, { outboxId });
      assert.equal(state, account === "dedup" ? "sending" : "unknown");
      assert.equal(again.rows.length, account === "dedup" ? 1 : 0);
    }
  });

  type Outcome = InputOf<typeof store.outboxSettle>["outcome"];
  const settleRow = (outboxId: string, outcome: Outcome, by = owner) =>
    gateway.request(store.outboxSettle, { opId: randomUUID(), outboxId, owner: by, outcome });

  test("a long text is continued at its position by any replica, with its own key for each message", async () => {
    const { outboxId } = await queue("parts", "c", "long");
    await queue("parts", "c", "next");
    const [first] = (await claimOutbox("parts", { continues: true })).rows;
    assert.deepEqual([first?.position, first?.parts], [0, 0]);
    await settleRow(outboxId, { state: "part", providerMessageId: "1", position: 40 });
    const other = { replica: "gateway-2", incarnation: "two" };
    const [second] = (await claimOutbox("parts", { owner: other, continues: true })).rows;
    assert.deepEqual([second?.text, second?.position, second?.parts], ["long", 40, 1], "the next text waits");
    assert.notEqual(second?.idempotencyKey, first?.idempotencyKey);
    await settleRow(outboxId, { state: "sent", providerMessageId: "2" }, other);
    const { state, providerMessageId, providerMessageIds } = await gateway.request(store.outboxGet, { outboxId });
    assert.deepEqual([state, providerMessageId, providerMessageIds], ["sent", "1", ["1", "2"]]);
  });

  test("a message in flight at a crash is interrupted, and its text ends as unknown after the rest", async () => {
    const { outboxId } = await queue("flight", "c", "long");
    await claimOutbox("flight", { continues: true });
    await settleRow(outboxId, { state: "part", providerMessageId: "1", position: 40 });
    await claimOutbox("flight", { continues: true });
    const reborn = { ...owner, incarnation: "reborn" };
    const [row] = (await claimOutbox("flight", { owner: reborn, continues: true })).rows;
    assert.deepEqual([row?.position, row?.interrupted], [40, true]);
    await settleRow(outboxId, { state: "doubtful", reason: "crashed", position: 80 }, reborn);
    const [last] = (await claimOutbox("flight", { owner: reborn, continues: true })).rows;
    assert.deepEqual([last?.position, last?.interrupted], [80, false]);
    await settleRow(outboxId, { state: "sent", providerMessageId: "3" }, reborn);
    const { state, error } = await gateway.request(store.outboxGet, { outboxId });
    assert.deepEqual([state, error], ["unknown", "crashed"]);
  });

  test("the rest of a text waits until it is asked for, and is sent once", async () => {
    const { outboxId } = await queue("held", "c", "long");
    await queue("held", "c", "next");
    await claimOutbox("held", { continues: true });
    await settleRow(outboxId, { state: "sent", providerMessageId: "1", heldAt: 40 });
    const [next] = (await claimOutbox("held", { continues: true })).rows;
    assert.equal(next?.text, "next", "the rest holds up no other text");
    await settleRow(next?.outboxId ?? "", { state: "sent", providerMessageId: "2" });
    const place = { channel: "telegram", account: "held" };
    const request = { opId: randomUUID(), ...place, conversation: "c", expiresInMs: 60_000 };
    assert.equal((await gateway.request(store.outboxMore, { ...request, conversation: "d" })).found, false);
    const again = { ...request, opId: randomUUID() };
    assert.equal((await gateway.request(store.outboxMore, again)).found, true);
    assert.equal((await gateway.request(store.outboxMore, again)).found, true, "the same request");
    const [rest] = (await claimOutbox("held", { continues: true })).rows;
    assert.deepEqual([rest?.outboxId, rest?.position, rest?.parts], [outboxId, 40, 1]);
    await settleRow(outboxId, { state: "sent", providerMessageId: "3" });
    assert.equal(
      (await gateway.request(store.outboxMore, { ...request, opId: randomUUID() })).found,
      false,
      "nothing is left",
    );
  });

  test("a reply context travels with its address to the sender", async () => {
    const address = {
      channel: "telegram",
      account: "context",
      conversation: "c",
      replyToId: "7",
      context: '{"token":"t"}',
    };
    await gateway.request(store.outboxPut, {
      opId: randomUUID(),
      outgoing: { address, text: "answer", expiresInMs: 60_000 },
    });
    const { rows } = await claimOutbox("context");
    assert.deepEqual(
      rows.map((row) => row.address),
      [address],
    );
  });

  test("rates of the account and of conversations hold for all replicas together", async () => {
    const conversations = ["g1", "g2", "d1", "d2", "d3"];
    for (const conversation of conversations) {
      for (const text of ["1", "2", "3"]) await queue("rates", conversation, text);
    }
    const rates = {
      account: { burst: 6, everyMs: 6_000_000 },
      conversations: [
        { pattern: "^g", burst: 1, everyMs: 6_000_000 },
        { pattern: "", burst: 2, everyMs: 6_000_000 },
      ],
    };
    const sent: string[] = [];
    for (let round = 0; round < 4; round++) {
      const claims = await Promise.all(
        ["one", "two"].map(async (incarnation) => {
          const by = { replica: `gateway-${incarnation}`, incarnation };
          const { rows, waitMs } = await claimOutbox("rates", { owner: by, continues: true, rates });
          for (const row of rows) await settleRow(row.outboxId, { state: "sent", providerMessageId: null }, by);
          return { rows, waitMs };
        }),
      );
      sent.push(...claims.flatMap(({ rows }) => rows.map(({ address }) => address.conversation)));
      if (round === 3) assert.ok(claims.every(({ waitMs = 0 }) => waitMs > 5_000_000 && waitMs <= 6_000_000));
    }
    assert.equal(sent.length, 6, "the account's burst");
    const count = (conversation: string) => sent.filter((each) => each === conversation).length;
    for (const conversation of conversations) assert.ok(count(conversation) <= (conversation.startsWith("g") ? 1 : 2));
  });

  test("a pause of a conversation outlives its text, and a second one pauses the account for all", async () => {
    const limited: Outcome = { state: "retry", afterMs: 6_000_000, reason: "429", scope: "conversation" };
    const { outboxId } = await queue("storm", "a", "first");
    await queue("storm", "a", "second");
    await claimOutbox("storm", { continues: true });
    await settleRow(outboxId, limited);
    await query("UPDATE parley.outbox SET expires_at = now() - interval '1 second' WHERE id = $1", [outboxId]);
    assert.deepEqual((await claimOutbox("storm", { continues: true })).rows, [], "the next text of the chat waits too");
    const other = await queue("storm", "b", "other");
    assert.equal((await claimOutbox("storm", { continues: true })).rows.length, 1, "other chats go on");
    await settleRow(other.outboxId, { ...limited, afterMs: 3_000_000 });
    await queue("storm", "c", "third");
    const { rows, waitMs = 0 } = await claimOutbox("storm", {
      owner: { replica: "gateway-2", incarnation: "two" },
      continues: true,
    });
    assert.deepEqual(rows, []);
    assert.ok(waitMs > 2_500_000 && waitMs <= 3_000_000, String(waitMs));
  });

  test("an account sends one text after its pause and then keeps its rate; a held text is no attempt", async () => {
    const rates = { account: { burst: 5, everyMs: 6_000_000 } };
    const { outboxId } = await queue("resumed", "a", "first");
    const claim = () => claimOutbox("resumed", { continues: true, rates });
    await claim();
    await settleRow(outboxId, { state: "retry", afterMs: 0, reason: "paused", held: true });
    assert.equal((await claim()).rows[0]?.attempts, 0);
    await settleRow(outboxId, { state: "retry", afterMs: 0, reason: "429", scope: "account" });
    for (const conversation of ["b", "c"]) await queue("resumed", conversation, "text");
    assert.deepEqual(
      (await claim()).rows.map(({ attempts }) => attempts),
      [1],
    );
    const { rows, waitMs = 0 } = await claim();
    assert.deepEqual(rows, []);
    assert.ok(waitMs > 5_000_000 && waitMs <= 6_000_000, String(waitMs));
  });
});

describe("pairing", () => {
  // design: 004.37
  test("a code admits one person once, and at most three codes are open", async () => {
    const ask = (contactId: string, code: string) =>
      gateway.request(store.pairingRequest, {
        channel: "irc",
        account: "net",
        contactId,
        name: null,
        codeSha256: code.repeat(64),
        ttlMs: 60_000,
      });
    assert.equal((await ask("ann", "a")).status, "created");
    assert.equal((await ask("ann", "b")).status, "pending");
    assert.equal((await ask("bob", "c")).status, "created");
    assert.equal((await ask("cat", "d")).status, "created");
    assert.equal((await ask("dan", "e")).status, "full");
    const approve = () => gateway.request(store.pairingApprove, { codeSha256: "a".repeat(64), role: "user" });
    assert.equal((await approve()).contact.contactId, "ann");
    await assert.rejects(approve(), failsWith("NOT_FOUND"));
    const { contact } = await gateway.request(store.contactGet, { channel: "irc", account: "net", contactId: "ann" });
    assert.equal(contact?.role, "user");
  });

  test("a request replaces the oldest of three after ten minutes, so that others cannot block pairing", async () => {
    const ask = (contactId: string, code: string) =>
      gateway.request(store.pairingRequest, {
        channel: "irc",
        account: "crowded",
        contactId,
        name: null,
        codeSha256: code.repeat(64),
        ttlMs: 60 * 60_000,
      });
    for (const [contactId, code] of [
      ["s1", "5"],
      ["s2", "6"],
      ["s3", "7"],
    ] as const)
      await ask(contactId, code);
    const age = (minutes: number, contactId: string) =>
      query(
        `UPDATE parley.pairings SET expires_at = now() + interval '60 minutes' - $1 * interval '1 minute' WHERE contact_id = $2`,
        [minutes, contactId],
      );
    await age(9, "s1");
    assert.equal((await ask("ann", "8")).status, "full");
    await age(12, "s2");
    await age(11, "s1");
    assert.equal((await ask("ann", "8")).status, "created");
    const { pairings } = await gateway.request(store.pairingList, {});
    assert.deepEqual(
      pairings.flatMap(({ account, contactId }) => (account === "crowded" ? [contactId] : [])).toSorted(),
      ["ann", "s1", "s3"],
    );
    await assert.rejects(
      gateway.request(store.pairingApprove, { codeSha256: "6".repeat(64), role: "user" }),
      failsWith("NOT_FOUND"),
    );
  });

  test("the text with a code is sent once, with its request, and not without it", async () => {
    const ask = (contactId: string, code: string) =>
      gateway.request(store.pairingRequest, {
        channel: "irc",
        account: "shown",
        contactId,
        name: null,
        codeSha256: code.repeat(64),
        ttlMs: 60_000,
        outgoing: {
          address: { channel: "irc", account: "shown", conversation: contactId },
          text: `code ${code}`,
          expiresInMs: 60_000,
        },
      });
    const hints: string[] = [];
    gateway.subscribe(outboxReady, { channel: "irc" }, ({ account }) => void hints.push(account));
    await gateway.flush();
    assert.equal((await ask("eve", "1")).status, "created");
    assert.equal((await ask("eve", "2")).status, "pending");
    await assert.rejects(ask("fay", "1"), "the code is already taken");
    const { rows } = await gateway.request(store.outboxClaim, {
      opId: randomUUID(),
      owner: { replica: "gateway-1", incarnation: "one" },
      channel: "irc",
      account: "shown",
      deduplicates: false,
      limit: 10,
      claimMs: 60_000,
    });
    assert.deepEqual(
      rows.map(({ address, text }) => [address.conversation, text]),
      [["eve", "code 1"]],
    );
    assert.deepEqual(hints, ["shown"]);
  });
});

describe("sizes", () => {
  const big = (size: number) => "x".repeat(size);

  async function turnWithResults(key: string, count: number, size: number) {
    const { sessionId } = await put(key);
    const turn = await started(sessionId);
    const calls = Array.from({ length: count }, (_, index) => ({
      callId: `c${index}`,
      tool: "exec",
      class: "pure" as const,
      input: "{}",
    }));
    await core.request(store.stepCommit, step(turn.turnId, 1, { toolCalls: calls, finish: null }));
    for (let n = 2; n < 2 + count; n++) await settle(turn.turnId, n, `c${n - 2}`, big(size));
    return { sessionId, turnId: turn.turnId };
  }

  test("a resumed turn fits in one reply with any history and open results", async () => {
    for (let count = 0; count < 12; count++) {
      await put("heavy", { parts: [{ type: "text", text: big(20_000) }] });
      const { sessionId } = await put("heavy", { parts: [{ type: "text", text: big(20_000) }] });
      for (let turn = 0; turn < 2; turn++)
        await core.request(store.stepCommit, step((await started(sessionId)).turnId, 1));
    }
    const { sessionId } = await turnWithResults("heavy", 8, 28_000);
    await fixture.takeOver();
    const claimed = await claim(sessionId);
    assert.equal(claimed.status, "resumed");
    assert.equal(claimed.turn.openSteps.length, 8);
    assert.equal(claimed.gap, true);
  });

  test("a long turn and a long log are read page by page", async () => {
    const { turnId } = await turnWithResults("long-turn", 25, 28_000);
    const { steps } = await core.request(store.turnGet, { turnId });
    assert.ok(steps.length > 5 && steps.length < 25);
    assert.equal((await core.request(store.turnGet, { turnId, n: 2 })).steps[0]?.n, 2);

    let sessionId = "";
    const answer = big(20_000);
    for (let count = 0; count < 20; count++) {
      ({ sessionId } = await put("long-log"));
      const turn = await started(sessionId);
      await core.request(
        store.stepCommit,
        step(turn.turnId, 1, {
          parts: [{ type: "text", text: answer }],
          finish: { state: "done", exitReason: "end_turn", text: answer },
        }),
      );
    }
    let seen = 0;
    for (let more = true, after = 0; more;) {
      const page = await gateway.request(store.eventList, { sessionId, afterSeq: after, limit: 1_000 });
      seen += page.events.length;
      after = page.events.at(-1)?.seq ?? after;
      more = page.more;
    }
    assert.equal(seen, 60);
  });
});

test("a broken connection fails its operation, not the store", async () => {
  const { sessionId } = await put("broken");
  const holder = new Client({ connectionString: stack.postgres.ownerUrl });
  await holder.connect();
  await holder.query("BEGIN");
  await holder.query("SELECT FROM parley.sessions WHERE id = $1 FOR UPDATE", [sessionId]);
  const claiming = claim(sessionId);
  const waiting =
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'parley_store' AND datname = $1";
  const database = new URL(stack.postgres.ownerUrl).pathname.slice(1);
  const admin = new Client({ connectionString: stack.postgres.adminUrl });
  await admin.connect();
  for (let ended = 0; ended === 0;) {
    const { rows } = await admin.query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) AS w`, [database]);
    ended = rows.length;
  }
  await holder.query("ROLLBACK");
  assert.equal((await claiming).status, "started");
  await Promise.all([holder.end(), admin.end()]);
});

test("a connection that is ready after its request has given up serves the next one", async () => {
  const database = openDatabase(stack.postgres.ownerUrl, 1, () => undefined);
  const broken = Promise.withResolvers<never>();
  const used = Promise.withResolvers<void>();
  const first = withClient(database, () => {
    used.resolve();
    return broken.promise;
  }).catch(() => undefined);
  await used.promise;
  const waiting = database.query("SELECT 1");
  await pollUntil(() => database.pool.waitingCount === 1, "a request that waits");
  // What is prepared on a new connection waits for this lock.
  const locker = new Client({ connectionString: stack.postgres.ownerUrl });
  await locker.connect();
  await locker.query("BEGIN; LOCK TABLE parley.ops IN ACCESS EXCLUSIVE MODE");
  broken.reject(new Error("Connection terminated"));
  await assert.rejects(waiting, failsWith("UNAVAILABLE", /timeout exceeded/));
  await locker.query("COMMIT");
  assert.equal((await database.query("SELECT 1")).rowCount, 1);
  await database.pool.end();
  await Promise.all([first, locker.end()]);
});

test("progress resets a turn's attempts", async () => {
  const { turnId, sessionId } = await turnWithCall("attempts", "pure");
  for (let times = 0; times < 3; times++) {
    await fixture.takeOver();
    await claim(sessionId);
  }
  await settle(turnId, 2, "call");
  await core.request(store.stepCommit, step(turnId, 3, { results: 1, finish: null, toolCalls: [] }));
  await fixture.takeOver();
  const claimed = await claim(sessionId);
  assert.ok(claimed.status === "resumed" && claimed.turn.attempt === 2);
});

test("operation ids are deleted after their retention, and not before", async () => {
  const database = openDatabase(stack.postgres.ownerUrl, 1, () => undefined);
  const [old, young] = [randomUUID(), randomUUID()];
  await query(
    "INSERT INTO parley.ops (op_id, result, created_at) VALUES ($1, '{}', now() - interval '25 hours'), ($2, '{}', now())",
    [old, young],
  );
  assert.equal(
    await deleteExpired(database, {
      opRetentionHours: 24,
      eventRetentionDays: 90,
      auditRetentionDays: 0,
      checkpointDays: 0,
    }),
    1,
  );
  assert.deepEqual(await query("SELECT op_id FROM parley.ops WHERE op_id = ANY($1::uuid[])", [[old, young]]), [
    { op_id: young },
  ]);
  await database.pool.end();
});

test("a session list shows queued input and running turns", async () => {
  const { sessionId } = await put("listed");
  await started(sessionId);
  await put("listed");
  const { sessions } = await gateway.request(store.sessionList, { limit: 200 });
  const listed = sessions.find((each) => each.key === "listed");
  assert.equal(listed?.queued, 1);
  assert.ok(listed.runningTurnId);
});

async function turnWithCall(key: string, toolClass: "once" | "pure") {
  const { sessionId } = await put(key);
  const turn = await started(sessionId);
  await core.request(
    store.stepCommit,
    step(turn.turnId, 1, {
      parts: [{ type: "tool_call", id: "call", name: "exec", input: "{}" }],
      toolCalls: [{ callId: "call", tool: "exec", class: toolClass, input: "{}" }],
      finish: null,
    }),
  );
  return { turnId: turn.turnId, sessionId };
}

async function finishCancelled(turnId: string): Promise<void> {
  await core.request(store.turnFinish, {
    opId: randomUUID(),
    epoch: fixture.epoch,
    turnId,
    parts: [],
    model: null,
    unsettled: "Cancelled",
    outgoing: [],
    finish: { state: "cancelled", exitReason: "interrupted", text: "Stopped." },
  });
}

/** The same for all claims in this file. */
const secret = "s".repeat(43);

function claimStep({ sessionId, turnId }: { sessionId: string; turnId: string }, epoch = fixture.epoch) {
  const grant = fixture.grant({ sessionId, turnId, n: 2 });
  return runner.request(store.stepClaim, { opId: randomUUID(), epoch, grant, runner: "r", claimHash: hashOf(secret) });
}

function settle(turnId: string, n: number, id: string, content = "ok") {
  return runner.request(store.callSettle, {
    opId: randomUUID(),
    grant: fixture.grant({ sessionId: randomUUID(), turnId, n }),
    claim: secret,
    state: "done",
    result: { type: "tool_result", id, name: "read", content, isError: false },
  });
}

async function query(text: string, values: unknown[]): Promise<unknown[]> {
  const client = new Client({ connectionString: stack.postgres.ownerUrl });
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(text, values);
    return rows;
  } finally {
    await client.end();
  }
}

const outboxOf = (turnId: string) => query("SELECT body FROM parley.outbox WHERE turn_id = $1", [turnId]);
