// Messages are found by their date and by the preceding message; on a real PostgreSQL and a real bus.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { dayWords } from "../src/memory/date-terms.ts";
import { openStoreFixture, saying, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;

before(async () => {
  fixture = await openStoreFixture(cleanup, "[memory]\nsessions = true\n");
});
after(() => cleanup[Symbol.asyncDispose]());

/** The owner sends a message without an answer; `daysAgo`: its age. */
async function say(conversation: string, text: string, daysAgo = 0): Promise<string> {
  const place = { channel: "telegram", account: "main", conversation };
  const { sessionId } = await fixture.put(`test:${conversation}`, { ...place, replyTo: place, ...saying(text) });
  const { turnId } = await fixture.started(sessionId);
  const { sql } = fixture;
  await sql.query("UPDATE parley.turns SET state = 'done', finished_at = now() WHERE id = $1", [turnId]);
  await sql.query("UPDATE parley.messages SET created_at = created_at - make_interval(days => $2) WHERE turn_id = $1", [
    turnId,
    daysAgo,
  ]);
  return turnId;
}

/** The hits of a query from another conversation. */
async function found(query: string): Promise<string[]> {
  const turnId = await say(randomUUID(), "Tell me.");
  const { hits } = await fixture.core.request(store.memorySearch, { turnId, query, limit: 10 });
  return hits.map(({ text }) => text);
}

test("a message is found by the words of the preceding message, after direct hits", async () => {
  const talk = randomUUID();
  await say(talk, "And the tortoise of your grandmother, how old?");
  assert.equal((await found("tortoise grandmother")).length, 1);
  await say(talk, "Ninety-one, I think.");
  await say(talk, "Anyway, dinner is ready.");
  assert.deepEqual(await found("tortoise grandmother"), [
    "And the tortoise of your grandmother, how old?",
    "Ninety-one, I think.",
  ]);
});

test("messages of another day or conversation are no context", async () => {
  const talk = randomUUID();
  await say(talk, "Who waters the bougainvillea?", 3);
  await say(talk, "The neighbour does.");
  await say(randomUUID(), "Somebody does.");
  assert.deepEqual(await found("bougainvillea"), ["Who waters the bougainvillea?"]);
});

test("a message is found by its date", async () => {
  await say(randomUUID(), "The boiler was mended.", 400);
  const day = new Date(Date.now() - 400 * 24 * 60 * 60 * 1000).toISOString().slice(0, 10);
  const asked = dayWords(day, "english").replace(/^\w+, /, "");
  assert.equal((await found(`What was on ${asked}?`))[0], "The boiler was mended.");
});

test("dayWords formats a date in the language of the text search configuration", () => {
  assert.equal(dayWords("2023-05-08", "english"), "Monday, May 8, 2023");
  assert.equal(dayWords("2023-05-08", "german"), "Montag, 8. Mai 2023");
  assert.equal(dayWords("2023-05-08", "simple"), "Monday, May 8, 2023");
  assert.equal(dayWords("2023-05-08", "klingon"), "Monday, May 8, 2023");
});
