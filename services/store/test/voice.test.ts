// Voice sessions and spoken answers on a real PostgreSQL and a real bus: utterances are stored once and in order, also when repeated.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { storeBlob, type Bus } from "@parley/bus";
import { store, voiceChanged, type Utterance, type InputOf, type Sender, type VoiceSession } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import type { Client } from "pg";
import { z } from "zod";
import { failsWith, openStoreFixture, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let core: Bus;
let gateway: Bus;
let sql: Client;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ core, gateway, sql } = fixture);
});
after(() => cleanup[Symbol.asyncDispose]());

/** Resolves when a statement of the store waits for another transaction. */
async function someoneWaitsForALock(): Promise<void> {
  await pollUntil(async () => {
    const { rowCount } = await sql.query(
      "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database() AND NOT granted AND locktype = 'transactionid'",
    );
    return rowCount !== null && rowCount > 0;
  }, "a statement that waits");
}

const Named = z.object({ name: z.string() });
const fenced = () => fixture.fenced();
const chat = { channel: "telegram", account: "main", conversation: "42" };
const sender: Sender = { ...chat, contact: { id: "7", name: "Ada" }, role: "owner", origin: "user" };

async function order(route: string, opId: string = randomUUID()) {
  return gateway.request(store.voiceOpen, { opId, route, source: "microphone", sender, replyTo: chat });
}

const listening = { state: "listening" as const, server: "speech", sttSessionId: "s1", runner: "runner-1" };
const move = (voiceId: string, to: InputOf<typeof store.voiceMove>["to"], tell: string | null = null) =>
  core.request(store.voiceMove, { ...fenced(), voiceId, to, tell });

/** A listening voice session on its own route. */
async function begun(): Promise<VoiceSession> {
  const { voice } = await order(`telegram:main:${randomUUID()}`);
  await core.request(store.voiceMove, { ...fenced(), voiceId: voice.voiceId, to: { state: "claimed" }, tell: null });
  const moved = await move(voice.voiceId, listening);
  assert.ok(moved.voice?.state === "listening");
  return moved.voice;
}

const final = (seq: number, text = `utterance ${seq}`): Utterance => ({ seq, type: "utterance_final", text });
const partial = (seq: number, text = "utter"): Utterance => ({ seq, type: "utterance_partial", text });
const advance = (voiceId: string, events: Utterance[], more: { opId?: string; epoch?: number } = {}) =>
  core.request(store.voiceAdvance, { ...fenced(), ...more, voiceId, events, keep: 5 });

async function inboxOf({ route }: VoiceSession): Promise<string[]> {
  const { rows } = await sql.query<{ text: string }>(
    `SELECT i.parts::json->0->>'text' AS text FROM parley.inbox i JOIN parley.sessions s ON s.id = i.session_id
     WHERE s.key = $1 ORDER BY i.seq`,
    [route],
  );
  return rows.map(({ text }) => text);
}

describe("recognized speech", () => {
  test("a final utterance is one inbox row with the session's reply address, a partial one none", async () => {
    const voice = await begun();
    const kept = await advance(voice.voiceId, [
      partial(1),
      final(2, " turn left "),
      partial(3),
      final(4, "then stop"),
      final(5, "  "),
    ]);
    assert.deepEqual([kept.sinceSeq, kept.inboxIds.length], [5, 2]);
    assert.deepEqual(await inboxOf(voice), ["turn left", "then stop"]);
    const { rows } = await sql.query("SELECT reply_to, trust, mode FROM parley.inbox WHERE id = $1", [
      kept.inboxIds[0],
    ]);
    assert.deepEqual(rows, [{ reply_to: JSON.stringify(chat), trust: "owner", mode: "queue" }]);
  });

  test("a repeated page with new events adds only the new ones", async () => {
    const voice = await begun();
    await advance(voice.voiceId, [final(1), final(2)]);
    const again = await advance(voice.voiceId, [final(2), final(1), partial(3), final(4)]);
    assert.deepEqual([again.sinceSeq, again.inboxIds.length], [4, 1]);
    assert.deepEqual(await inboxOf(voice), ["utterance 1", "utterance 2", "utterance 4"]);
  });

  test("a repeated operation id returns its first reply", async () => {
    const voice = await begun();
    const opId = randomUUID();
    const first = await advance(voice.voiceId, [final(1)], { opId });
    assert.deepEqual(await advance(voice.voiceId, [final(1)], { opId }), first);
  });

  // design: 002.25
  test("concurrent pages of two leaders store each utterance once and in order", async () => {
    const cuts = fc.array(fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 6 })), {
      minLength: 2,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(cuts, async (pages) => {
        const voice = await begun();
        // A page begins after the cursor, as a server replies: without gaps.
        let reached = 0;
        const asked = pages.map(([from, length]) => {
          const start = Math.min(from, reached + 1);
          reached = Math.max(reached, start + length - 1);
          return Array.from({ length }, (_, index) => final(start + index));
        });
        for (const page of asked) {
          await Promise.all([advance(voice.voiceId, page), advance(voice.voiceId, page.slice(0, 2))]);
        }
        const expected = Array.from({ length: reached }, (_, index) => `utterance ${index + 1}`);
        assert.deepEqual(await inboxOf(voice), expected);
      }),
      { numRuns: 12 },
    );
  });

  test("a stale leader stores nothing", async () => {
    const voice = await begun();
    const old = fixture.epoch;
    await fixture.takeOver();
    await assert.rejects(advance(voice.voiceId, [final(1)], { epoch: old }), failsWith("STALE_EPOCH"));
    await assert.rejects(
      core.request(store.voiceMove, {
        opId: randomUUID(),
        epoch: old,
        voiceId: voice.voiceId,
        to: listening,
        tell: null,
      }),
      failsWith("STALE_EPOCH"),
    );
    assert.deepEqual(await inboxOf(voice), []);
    assert.equal((await advance(voice.voiceId, [final(1)])).inboxIds.length, 1, "the next leader continues");
  });

  test("the newest events of all types can be listed, up to the limit", async () => {
    const voice = await begun();
    await advance(
      voice.voiceId,
      [1, 2, 3, 4, 5, 6, 7].map((seq) => partial(seq, `p${seq}`)),
    );
    const { events } = await gateway.request(store.voiceGet, { route: voice.route, events: 100 });
    assert.deepEqual(
      events.map(({ text }) => text),
      ["p3", "p4", "p5", "p6", "p7"],
    );
  });

  test("an ended session stores nothing", async () => {
    const voice = await begun();
    await move(voice.voiceId, { state: "stopped", problem: null });
    const late = await advance(voice.voiceId, [final(1)]);
    assert.deepEqual([late.state, late.inboxIds], ["stopped", []]);
    assert.deepEqual(await inboxOf(voice), []);
  });
});

describe("a voice session", () => {
  test("a repeated request is the same session, and another request gets the active one", async () => {
    const opId = randomUUID();
    const first = await order("telegram:main:once", opId);
    const again = await order("telegram:main:once", opId);
    const other = await order("telegram:main:once");
    assert.deepEqual([first.opened, again.opened, other.opened], [true, true, false]);
    assert.equal(new Set([first, again, other].map(({ voice }) => voice.voiceId)).size, 1);
  });

  test("is started once: a second attempt is not granted", async () => {
    const { voice } = await order(`telegram:main:${randomUUID()}`);
    const claim = () =>
      core.request(store.voiceMove, { ...fenced(), voiceId: voice.voiceId, to: { state: "claimed" }, tell: null });
    const granted = (await Promise.all([claim(), claim(), claim()])).filter((each) => each.moved);
    assert.equal(granted.length, 1);
    await fixture.takeOver();
    assert.equal((await claim()).moved, false);
  });

  test("stopped before the start it ends immediately, stopped during the start it ends afterwards", async () => {
    const early = await order(`telegram:main:${randomUUID()}`);
    const stopped = await gateway.request(store.voiceStop, { route: early.voice.route });
    assert.equal(stopped.voice?.state, "stopped");

    const { voice } = await order(`telegram:main:${randomUUID()}`);
    await core.request(store.voiceMove, { ...fenced(), voiceId: voice.voiceId, to: { state: "claimed" }, tell: null });
    const hinted = Promise.withResolvers<void>();
    const hint = core.subscribe(voiceChanged, {}, () => hinted.resolve());
    await core.flush();
    await gateway.request(store.voiceStop, { route: voice.route });
    await hinted.promise;
    hint.close();
    const moved = await move(voice.voiceId, listening);
    assert.deepEqual([moved.voice?.state, moved.voice?.sttSessionId], ["stopping", "s1"]);
    const { voices } = await core.request(store.voiceWork, { orderedMsAgo: 0 });
    assert.ok(
      voices.some(({ voiceId }) => voiceId === voice.voiceId),
      "the leader finds it",
    );
  });

  test("a failed one notifies its conversation once and stays failed", async () => {
    const voice = await begun();
    const to = { state: "failed" as const, problem: "the server died" };
    await move(voice.voiceId, to, "Voice has stopped: the server died.");
    const second = await move(voice.voiceId, { state: "stopped", problem: null }, "again");
    assert.deepEqual([second.moved, second.voice?.state], [false, "failed"]);
    const { rows } = await sql.query(
      "SELECT body FROM parley.outbox WHERE conversation = '42' AND body LIKE '%server died%'",
    );
    assert.equal(rows.length, 1);
  });

  test("one that was just requested is left to the requesting gateway", async () => {
    const { voice } = await order(`telegram:main:${randomUUID()}`);
    const has = async (orderedMsAgo: number) =>
      (await core.request(store.voiceWork, { orderedMsAgo })).voices.some(({ voiceId }) => voiceId === voice.voiceId);
    assert.deepEqual([await has(60_000), await has(0)], [false, true]);
  });
});

describe("a spoken answer", () => {
  const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

  /** A turn answered in the chat with this text, in a session with or without spoken answers. */
  async function answered(text: string, voiceReplies: boolean) {
    const conversation = randomUUID();
    const address = { ...chat, conversation };
    const sessionKey = `telegram:main:${conversation}`;
    const message = {
      ...sender,
      externalId: randomUUID(),
      conversation,
      parts: [{ type: "text" as const, text: "hi" }],
      replyTo: address,
    };
    const { sessionId } = await gateway.request(store.inboxPut, { message, sessionKey });
    if (voiceReplies) await gateway.request(store.sessionUpdate, { sessionId, overrides: { voiceReplies: true } });
    const claimed = await core.request(store.turnClaim, { ...fenced(), sessionId, knownSeq: 0, maxClaims: 3 });
    assert.ok("turn" in claimed);
    const { turnId } = claimed.turn;
    await core.request(store.stepCommit, {
      ...fenced(),
      turnId,
      n: 1,
      parts: [{ type: "text", text }],
      model: "test",
      stopReason: "end_turn",
      usage,
      results: 0,
      toolCalls: [],
      outgoing: [{ address, text, expiresInMs: 60_000 }],
      finish: { state: "done", exitReason: "end_turn", text },
    });
    return { turnId, conversation };
  }

  const waiting = async (turnId: string) =>
    (await core.request(store.spokenPending, { limit: 100 })).spoken.filter((each) => each.turnId === turnId);
  const outboxOf = async (conversation: string) => {
    const { rows } = await sql.query<{ body: string; attachment: string | null }>(
      "SELECT body, attachment FROM parley.outbox WHERE conversation = $1 ORDER BY id",
      [conversation],
    );
    return rows.map(({ body, attachment }) =>
      attachment === null ? String(JSON.parse(body)) : Named.parse(JSON.parse(attachment)).name,
    );
  };

  test("is pending from the commit of its text, if the session enables it", async () => {
    const spoken = await answered("good evening", true);
    assert.deepEqual(
      (await waiting(spoken.turnId)).map(({ text }) => text),
      ["good evening"],
    );
    const silent = await answered("good morning", false);
    assert.deepEqual(await waiting(silent.turnId), []);
  });

  test("is sent after its text, once, also when it is settled repeatedly", async () => {
    const { turnId, conversation } = await answered("once only", true);
    const [spoken] = await waiting(turnId);
    assert.ok(spoken !== undefined);
    const sound = Buffer.from(`OggS${"\0".repeat(24)}OpusHead`);
    const blob = await storeBlob(core, sound);
    assert.equal(blob.sha256, createHash("sha256").update(sound).digest("hex"));
    const outcome = { state: "made" as const, attachment: { ...blob, name: "voice.ogg" } };
    const made = { ...fenced(), spokenId: spoken.spokenId, outcome };
    await core.request(store.spokenSettle, made);
    await core.request(store.spokenSettle, made);
    await core.request(store.spokenSettle, { ...made, opId: randomUUID() });
    assert.deepEqual(await outboxOf(conversation), ["once only", "voice.ogg"]);
    assert.deepEqual(await waiting(turnId), []);
  });

  test("is numbered after concurrent outbox rows of the same turn", async () => {
    const { turnId, conversation } = await answered("two at once", true);
    const [spoken] = await waiting(turnId);
    assert.ok(spoken !== undefined);
    const blob = await storeBlob(core, Buffer.from(`OggS${"\0".repeat(24)}OpusHead`));
    await sql.query("BEGIN");
    await sql.query(
      `INSERT INTO parley.outbox (turn_id, ordinal, channel, account, conversation, body, expires_at)
       VALUES ($1, 1, 'telegram', 'main', $2, '"by a tool"', now() + interval '1 hour')`,
      [turnId, conversation],
    );
    const outcome = { state: "made" as const, attachment: { ...blob, name: "voice.ogg" } };
    const settled = core.request(store.spokenSettle, { ...fenced(), spokenId: spoken.spokenId, outcome });
    await someoneWaitsForALock();
    await sql.query("COMMIT");
    await settled;
    assert.deepEqual(await outboxOf(conversation), ["two at once", "by a tool", "voice.ogg"]);
  });

  test("is listed in as many pages as the bus requires", async () => {
    const long = "x".repeat(120_000);
    const turns: string[] = [];
    for (let n = 0; n < 6; n++) turns.push((await answered(long, true)).turnId);
    for (const turnId of turns) {
      const [spoken] = await waiting(turnId);
      assert.equal(spoken?.text.length, long.length);
      const order = { ...fenced(), spokenId: spoken?.spokenId ?? "", outcome: { state: "dropped" as const } };
      await core.request(store.spokenSettle, order);
    }
  });

  test("is retried with its count after a failure, and deleted when dropped", async () => {
    const { turnId, conversation } = await answered("hard to say", true);
    const [spoken] = await waiting(turnId);
    const settle = (outcome: InputOf<typeof store.spokenSettle>["outcome"]) =>
      core.request(store.spokenSettle, { ...fenced(), spokenId: spoken?.spokenId ?? "", outcome });
    await settle({ state: "retry", afterMs: 60_000 });
    assert.deepEqual(await waiting(turnId), [], "not yet");
    await settle({ state: "retry", afterMs: 0 });
    assert.equal((await waiting(turnId))[0]?.attempts, 2);
    await settle({ state: "dropped" });
    assert.deepEqual(await waiting(turnId), []);
    assert.deepEqual(await outboxOf(conversation), ["hard to say"]);
  });
});
