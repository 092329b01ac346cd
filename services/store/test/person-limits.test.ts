// Limits of people on a real PostgreSQL: what counts, what is refused, and who is told.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { store, type InboundMessage, type InputOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openDatabase } from "../src/db/database.ts";
import { deleteExpired } from "../src/retention/retention.ts";
import { inbound, openStoreFixture, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;

before(async () => {
  fixture = await openStoreFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const place = { channel: "telegram", account: "main" };
const unlimited: store.PersonLimits = { messagesPerMinute: 0, turnsPerDay: 0, usdPerDay: 0 };
const newPerson = () => `person-${randomUUID()}`;

/** A person's message in their chat, under these limits of their role. */
function put(
  id: string,
  limits: Partial<store.PersonLimits>,
  more: Partial<InboundMessage> = {},
  request: Partial<InputOf<typeof store.inboxPut>> = {},
) {
  const conversation = id;
  const from = { ...place, conversation, contact: { id }, role: "guest" as const, replyTo: { ...place, conversation } };
  return fixture.gateway.request(store.inboxPut, {
    message: inbound({ ...from, ...more }),
    sessionKey: `telegram:main:${id}`,
    limits: { personId: id, defaults: { ...unlimited, ...limits } },
    ...request,
  });
}

const textsTo = async (id: string) =>
  (
    await fixture.sql.query<{ body: string }>("SELECT body FROM parley.outbox WHERE conversation = $1 ORDER BY id", [
      id,
    ])
  ).rows.map(({ body }) => JSON.parse(body) as string);

const auditOf = async (id: string) =>
  (
    await fixture.sql.query<{ actor: string; target: string; outcome: string }>(
      "SELECT actor, target, outcome FROM parley.audit_log WHERE action = 'people.limited' AND actor LIKE $1 ORDER BY n",
      [`${id} %`],
    )
  ).rows;

const limit = (id: string, own: Partial<InputOf<typeof store.personLimitsSet>>) =>
  fixture.gateway.request(store.personLimitsSet, { ...place, contactId: id, ...own });

async function listed(id: string) {
  const { people } = await fixture.gateway.request(store.personLimitsList, {});
  return people.find((each) => each.contactId === id);
}

/** Runs the session's next turn to its end, at this cost; null: the model has no price. */
async function runTurn(sessionId: string, costMicros: number | null): Promise<string> {
  const { turnId } = await fixture.started(sessionId);
  await fixture.core.request(
    store.stepCommit,
    stepOf(fixture.fenced(), turnId, 1, costMicros === null ? {} : { costMicros }),
  );
  return turnId;
}

describe("messages a minute", () => {
  test("stores as many as the limit and tells the sender once when they arrive together", async () => {
    const id = newPerson();
    const results = await Promise.all(Array.from({ length: 12 }, () => put(id, { messagesPerMinute: 5 })));
    const refused = results.filter((each) => each.refused);
    assert.equal(results.length - refused.length, 5);
    for (const { overLimit, inboxId } of refused) {
      assert.equal(overLimit?.limit, "messages_per_minute");
      assert.ok(overLimit.retryAfterMs > 0 && overLimit.retryAfterMs <= 60_000, String(overLimit.retryAfterMs));
      assert.equal(inboxId, "");
    }
    const texts = await textsTo(id);
    assert.equal(texts.length, 1);
    assert.match(texts[0] ?? "", /^Message not accepted: you may send at most 5 a minute; try again in \d+ s\.$/);
    const { rows } = await fixture.sql.query("SELECT FROM parley.inbox WHERE conversation = $1", [JSON.stringify(id)]);
    assert.equal(rows.length, 5);
    const target = { ...place, contactId: id, limit: "messages_per_minute" };
    assert.deepEqual(await auditOf(id), [
      { actor: `${id} (telegram:main)`, target: JSON.stringify(target), outcome: "refused" },
    ]);
  });

  test("accepts again and may tell again when the minute has passed", async () => {
    const id = newPerson();
    await put(id, { messagesPerMinute: 1 });
    assert.equal((await put(id, { messagesPerMinute: 1 })).refused, true);
    await fixture.sql.query("UPDATE parley.person_messages SET at = at - interval '61 seconds' WHERE contact_id = $1", [
      id,
    ]);
    await fixture.sql.query(
      "UPDATE parley.person_refusals SET told_until = told_until - interval '61 seconds' WHERE contact_id = $1",
      [id],
    );
    assert.equal((await put(id, { messagesPerMinute: 1 })).refused, false);
    assert.equal((await put(id, { messagesPerMinute: 1 })).overLimit?.first, true);
    assert.equal((await put(id, { messagesPerMinute: 1 })).overLimit?.first, false);
    assert.equal((await textsTo(id)).length, 2);
    assert.equal((await listed(id))?.today.refused, 3);
  });

  test("returns the stored message when it is delivered again over the limit", async () => {
    const id = newPerson();
    const externalId = randomUUID();
    const stored = await put(id, { messagesPerMinute: 1 }, { externalId });
    const again = await put(id, { messagesPerMinute: 1 }, { externalId });
    assert.deepEqual([again.inboxId, again.duplicate, again.refused], [stored.inboxId, true, false]);
    assert.equal((await listed(id))?.today.messages, 1);
  });

  test("saves the cursor of the connection with a refusal", async () => {
    const id = newPerson();
    const name = `telegram:${randomUUID()}`;
    const { rows } = await fixture.sql.query<{ fence: number }>(
      "INSERT INTO parley.leases (name, owner, fence, expires_at) VALUES ($1, 'test', 7, now() + interval '1 minute') RETURNING fence::int",
      [name],
    );
    const lease = { name, fence: rows[0]?.fence ?? 0 };
    await put(id, { messagesPerMinute: 1 }, {}, { lease: { ...lease, cursor: "1" } });
    const refused = await put(id, { messagesPerMinute: 1 }, {}, { lease: { ...lease, cursor: "2" } });
    assert.equal(refused.refused, true);
    const after = await fixture.sql.query("SELECT cursor FROM parley.leases WHERE name = $1", [name]);
    assert.deepEqual(after.rows, [{ cursor: "2" }]);
  });

  test("does not count the messages of others", async () => {
    const [one, other] = [newPerson(), newPerson()];
    await put(one, { messagesPerMinute: 1 });
    assert.equal((await put(other, { messagesPerMinute: 1 })).refused, false);
    assert.equal((await put(one, { messagesPerMinute: 1 }, { account: "second" })).refused, false);
  });
});

describe("turns a day", () => {
  test("counts a message that waits, a turn once, and no cancelled message", async () => {
    const id = newPerson();
    const { sessionId } = await put(id, { turnsPerDay: 2 });
    const { turnId } = await fixture.started(sessionId);
    await put(id, { turnsPerDay: 2 }, { mode: "steer" });
    assert.equal((await put(id, { turnsPerDay: 2 })).overLimit?.limit, "turns_per_day");
    // The second message joins the turn of the first.
    await fixture.sql.query("UPDATE parley.inbox SET state = 'claimed', turn_id = $2 WHERE session_id = $1", [
      sessionId,
      turnId,
    ]);
    const next = await put(id, { turnsPerDay: 2 });
    assert.equal(next.refused, false);
    assert.equal((await put(id, { turnsPerDay: 2 })).refused, true);
    await fixture.gateway.request(store.inboxEdit, { inboxId: next.inboxId, change: { do: "cancel" } });
    assert.equal((await put(id, { turnsPerDay: 2 })).refused, false);
  });

  test("starts again at midnight UTC and tells the sender so", async () => {
    const id = newPerson();
    await put(id, { turnsPerDay: 1 });
    const { overLimit } = await put(id, { turnsPerDay: 1 });
    const { rows } = await fixture.sql.query<{ ms: number }>(
      "SELECT (extract(epoch FROM date_trunc('day', now(), 'UTC') + interval '1 day' - now()) * 1000)::float8 AS ms",
    );
    assert.ok(Math.abs((overLimit?.retryAfterMs ?? 0) - (rows[0]?.ms ?? 0)) < 30_000);
    assert.equal((await put(id, { turnsPerDay: 1 })).overLimit?.first, false);
    assert.deepEqual(await textsTo(id), [
      "Message not accepted: you have used up your 1 requests of today; try again after midnight UTC.",
    ]);
    await fixture.sql.query("UPDATE parley.person_messages SET at = at - interval '1 day' WHERE contact_id = $1", [id]);
    assert.equal((await put(id, { turnsPerDay: 1 })).refused, false);
  });

  test("accepts the answer to a question that the person's turn asks", async () => {
    const id = newPerson();
    const { sessionId } = await put(id, { turnsPerDay: 1 });
    const { turnId } = await fixture.started(sessionId);
    const call = { callId: "call-2", tool: "ask_user", class: "once" as const, input: "{}" };
    await fixture.core.request(
      store.stepCommit,
      stepOf(fixture.fenced(), turnId, 1, { toolCalls: [call], finish: null }),
    );
    const question = { turnId, n: 2, question: "Which?", options: [], expiresInMs: 60_000, outgoing: [] };
    await fixture.core.request(store.questionAsk, { ...fixture.fenced(), ...question });
    const forwarded = { from: "Eve" };
    assert.equal((await put(id, { turnsPerDay: 1 }, { forwarded })).refused, true);
    const answer = await put(id, { turnsPerDay: 1 });
    assert.equal(answer.refused, false);
    const { turn } = await fixture.gateway.request(store.inboxGet, { inboxId: answer.inboxId });
    assert.equal(turn?.turnId, turnId);
    assert.equal((await put(id, { turnsPerDay: 1 })).refused, true);
  });
});

test("names the turn to interrupt again when a person with limits repeats a message that waits", async () => {
  const id = newPerson();
  const limits = { messagesPerMinute: 10 };
  const { sessionId } = await put(id, limits);
  const { turnId } = await fixture.started(sessionId);
  const again = { externalId: randomUUID(), mode: "interrupt" } as const;
  assert.equal((await put(id, limits, again)).runningTurnId, turnId);
  const { duplicate, waits, runningTurnId, runningTrust } = await put(id, limits, again);
  assert.deepEqual([duplicate, waits, runningTurnId, runningTrust], [true, true, turnId, "guest"]);
});

describe("dollars a day", () => {
  test("refuses further messages when the turns and their sub-agents have cost the limit", async () => {
    const id = newPerson();
    const { sessionId } = await put(id, { usdPerDay: 0.5 });
    const turnId = await runTurn(sessionId, 300_000);
    const next = await put(id, { usdPerDay: 0.5 });
    assert.equal(next.refused, false);
    await runTurn(next.sessionId, 0);
    // A sub-agent of the first turn.
    const { turnId: child } = await fixture.begun();
    await fixture.sql.query("UPDATE parley.turns SET root_turn_id = $2, cost_micros = 200000 WHERE id = $1", [
      child,
      turnId,
    ]);
    const { overLimit } = await put(id, { usdPerDay: 0.5 });
    assert.equal(overLimit?.limit, "usd_per_day");
    assert.match(overLimit.text, /your budget \(\$0\.50\) of today/);
    assert.equal((await listed(id))?.today.usd, 0.5);
  });

  test("does not count calls of a model without a known price, and shows their number", async () => {
    const id = newPerson();
    for (let n = 0; n < 3; n += 1) {
      const { sessionId, refused } = await put(id, { usdPerDay: 0.01 });
      assert.equal(refused, false);
      await runTurn(sessionId, null);
    }
    const today = (await listed(id))?.today;
    assert.deepEqual([today?.usd, today?.unpricedCalls, today?.turns], [0, 3, 3]);
  });
});

describe("limits of one person", () => {
  test("replace those of the role, one by one, from the next message on", async () => {
    const id = newPerson();
    assert.deepEqual((await limit(id, { messagesPerMinute: 2 })).own, {
      messagesPerMinute: 2,
      turnsPerDay: null,
      usdPerDay: null,
    });
    await put(id, { messagesPerMinute: 1, turnsPerDay: 2 });
    await put(id, { messagesPerMinute: 1, turnsPerDay: 2 });
    assert.equal((await put(id, { messagesPerMinute: 1 })).overLimit?.limit, "messages_per_minute");
    await limit(id, { messagesPerMinute: 0 });
    assert.equal((await put(id, { messagesPerMinute: 1, turnsPerDay: 2 })).overLimit?.limit, "turns_per_day");
    await limit(id, { turnsPerDay: 0 });
    // A person without any limit is not counted.
    const before = (await listed(id))?.today.messages;
    assert.equal((await put(id, { messagesPerMinute: 1, turnsPerDay: 2 })).refused, false);
    assert.equal((await listed(id))?.today.messages, before);
  });

  test("let the sender be told again, and are gone when all are those of the role", async () => {
    const id = newPerson();
    await put(id, { turnsPerDay: 1 });
    assert.equal((await put(id, { turnsPerDay: 1 })).overLimit?.first, true);
    await limit(id, { turnsPerDay: 1 });
    assert.equal((await put(id, {})).overLimit?.first, true);
    await limit(id, { turnsPerDay: null });
    const { rows } = await fixture.sql.query("SELECT FROM parley.person_limits WHERE contact_id = $1", [id]);
    assert.equal(rows.length, 0);
    assert.equal((await put(id, {})).refused, false);
  });
});

test("retention deletes what no limit needs any more", async () => {
  const [old, fresh] = [newPerson(), newPerson()];
  for (const id of [old, fresh]) {
    await put(id, { turnsPerDay: 1 });
    await put(id, { turnsPerDay: 1 });
  }
  await fixture.sql.query("UPDATE parley.person_messages SET at = at - interval '3 days' WHERE contact_id = $1", [old]);
  await fixture.sql.query("UPDATE parley.person_refusals SET day = day - 3 WHERE contact_id = $1", [old]);
  const database = openDatabase(fixture.stack.postgres.storeUrl, 1, () => undefined);
  cleanup.add(() => database.pool.end());
  await deleteExpired(database, {
    opRetentionHours: 24,
    eventRetentionDays: 30,
    auditRetentionDays: 0,
    checkpointDays: 0,
  });
  assert.equal(await listed(old), undefined);
  const { rows } = await fixture.sql.query<{ n: number }>(
    `SELECT (SELECT count(*) FROM parley.person_messages WHERE contact_id = $1)::int
          + (SELECT count(*) FROM parley.person_refusals WHERE contact_id = $1)::int AS n`,
    [old],
  );
  assert.equal(rows[0]?.n, 0);
  assert.deepEqual((await listed(fresh))?.today.refused, 1);
});
