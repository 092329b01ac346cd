// Turns that start in the commit of their message, while the leader reports free turns; on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { inboxReady, leaderCapacity, store, type InboundMessage, type PayloadOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { failsWith, inbound, openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

type Ready = PayloadOf<typeof inboxReady>;

const cleanup = new Cleanup();
let fixture: StoreFixture;
const hints: Ready[] = [];

before(async () => {
  fixture = await openStoreFixture(cleanup);
  fixture.core.subscribe(inboxReady, {}, (hint) => hints.push(hint));
  await fixture.core.flush();
});
beforeEach(() => report(true));
after(() => cleanup[Symbol.asyncDispose]());

function report(free: boolean, epoch = fixture.epoch): void {
  fixture.core.publish(leaderCapacity, { epoch, free });
}

/** Over the leader's connection, on which the store receives its report first. */
function put(sessionKey: string, said: Partial<InboundMessage> = {}) {
  return fixture.core.request(store.inboxPut, { message: inbound(said), sessionKey });
}

/** The hint of a session; the store sends it before its reply. */
function hintOf(sessionId: string): Ready {
  const hint = hints.find((each) => each.sessionId === sessionId);
  assert.ok(hint, "the store sent no hint");
  return hint;
}

async function statesOf(sessionId: string): Promise<string[]> {
  const { rows } = await fixture.sql.query<{ state: string }>(
    "SELECT state FROM parley.inbox WHERE session_id = $1 ORDER BY seq",
    [sessionId],
  );
  return rows.map(({ state }) => state);
}

const newKey = () => `test:${randomUUID()}`;

describe("an idle session", () => {
  test("starts a turn with its message when the leader has free turns", async () => {
    const { sessionId, inboxId } = await put(newKey(), saying("at once"));
    const { started } = hintOf(sessionId);
    assert.ok(started);
    assert.equal(started.epoch, fixture.epoch);
    assert.deepEqual(started.turn.inboxIds, [inboxId]);
    assert.deepEqual([started.message.seq, started.message.turnId], [1, started.turn.turnId]);
    assert.deepEqual(started.message.parts, saying("at once").parts);
    assert.deepEqual(await statesOf(sessionId), ["claimed"]);
    const committed = await fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), started.turn.turnId, 1));
    assert.equal(committed.messageSeq, 2);
  });

  test("returns the same turn as a claim of the same message", async () => {
    const key = newKey();
    const first = hintOf((await put(key, saying("one"))).sessionId).started;
    assert.ok(first);
    const claimed = await fixture.core.request(store.turnClaim, {
      ...fixture.fenced(),
      sessionId: first.turn.sessionId,
      knownSeq: 0,
      maxClaims: 5,
    });
    assert.equal(claimed.status, "resumed");
    // What a resumed turn alone has: its second claim, and the rules that people granted during it.
    assert.deepEqual(claimed.turn, { ...first.turn, attempt: 2, waitedMs: claimed.turn.waitedMs, granted: [] });
    assert.deepEqual(claimed.session, first.session);
    assert.deepEqual(claimed.messages, [first.message]);
  });

  test("lists the turn for the sweep of the leader and of its successor", async () => {
    const { sessionId } = await put(newKey());
    for (const epoch of [fixture.epoch, fixture.epoch + 1]) {
      const { sessions } = await fixture.core.request(store.inboxPending, { epoch, limit: 1_000 });
      assert.ok(sessions.some((each) => each.sessionId === sessionId && each.resume));
    }
  });
});

describe("a message is only stored", () => {
  test("when the leader reports no free turn", async () => {
    report(false);
    const { sessionId } = await put(newKey());
    assert.equal(hintOf(sessionId).started, undefined);
    assert.deepEqual(await statesOf(sessionId), ["queued"]);
  });

  test("when the leader that reported free turns has been replaced", async () => {
    const former = fixture.epoch;
    await fixture.takeOver();
    const { sessionId } = await put(newKey());
    report(true, former);
    const later = await put(newKey());
    for (const id of [sessionId, later.sessionId]) assert.equal(hintOf(id).started, undefined);
    assert.deepEqual(await statesOf(sessionId), ["queued"]);
  });

  test("when a takeover waits for the lock of the writers", async () => {
    await fixture.sql.query("BEGIN; SELECT pg_advisory_xact_lock(7305510218)");
    const { sessionId } = await put(newKey());
    await fixture.sql.query("COMMIT");
    assert.equal(hintOf(sessionId).started, undefined);
    assert.deepEqual(await statesOf(sessionId), ["queued"]);
  });

  test("when a turn of its session is running or a row is queued", async () => {
    const key = newKey();
    const { sessionId } = await put(key);
    await put(key);
    assert.deepEqual(await statesOf(sessionId), ["claimed", "queued"]);
    const { turnId } = hintOf(sessionId).started?.turn ?? assert.fail("no turn started");
    await fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1));
    await put(key);
    assert.deepEqual(await statesOf(sessionId), ["done", "queued", "queued"]);
  });

  test("when it is a duplicate of a message whose turn has ended", async () => {
    const key = newKey();
    const said = { externalId: randomUUID() };
    const { sessionId } = await put(key, said);
    const { turnId } = hintOf(sessionId).started?.turn ?? assert.fail("no turn started");
    await fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1));
    assert.equal((await put(key, said)).duplicate, true);
    assert.deepEqual(await statesOf(sessionId), ["done"]);
  });

  test("when it waits for the end of a window", async () => {
    const { sessionId } = await put(newKey(), { mode: "coalesce", windowMs: 60_000 });
    assert.equal(hintOf(sessionId).started, undefined);
    assert.deepEqual(await statesOf(sessionId), ["queued"]);
  });
});

test("starts one turn when messages of a session arrive at the same time", async () => {
  const key = newKey();
  const { sessionId } = await put(key);
  const { turnId } = hintOf(sessionId).started?.turn ?? assert.fail("no turn started");
  await fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1));
  await Promise.all(Array.from({ length: 20 }, () => put(key)));
  const states = await statesOf(sessionId);
  assert.equal(states.filter((state) => state === "claimed").length, 1);
  assert.equal(states.filter((state) => state === "queued").length, 19);
  const { rows } = await fixture.sql.query("SELECT FROM parley.turns WHERE session_id = $1 AND state = 'running'", [
    sessionId,
  ]);
  assert.equal(rows.length, 1);
});

test("refuses the step of a leader that has been replaced, and changes nothing", async () => {
  const { sessionId } = await put(newKey());
  const { turnId } = hintOf(sessionId).started?.turn ?? assert.fail("no turn started");
  const former = fixture.fenced();
  await fixture.takeOver();
  await assert.rejects(fixture.core.request(store.stepCommit, stepOf(former, turnId, 1)), failsWith("STALE_EPOCH"));
  const { rows } = await fixture.sql.query(
    "SELECT t.state, t.next_step, s.seq FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id WHERE t.id = $1",
    [turnId],
  );
  assert.deepEqual(rows, [{ state: "running", next_step: 1, seq: "1" }]);
});
