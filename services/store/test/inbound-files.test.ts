// Messages whose files are fetched after their commit: what waits for them, claims of replicas, and the bound; on a real PostgreSQL.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { storeBlob } from "@parley/bus";
import { store, type InboundMessage, type InputOf, type Part } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { inbound, openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;

before(async () => {
  fixture = await openStoreFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

const file = { type: "pending_file" as const, kind: "photo", bytes: 3, handle: "file-1" };
const aMinute = { claimMs: 60_000, dueMs: 60_000 };
const note = (text: string) => ({ type: "text" as const, text });

/** A photo with a caption, whose file is missing. */
async function photo(key: string, caption: string, more: Partial<InboundMessage> = {}, files = aMinute) {
  const message = inbound({ parts: [note(caption), file], ...more });
  return fixture.gateway.request(store.inboxPut, { message, sessionKey: key, files });
}

const claimFiles = (more: Partial<InputOf<typeof store.fileClaim>> = {}) =>
  fixture.gateway.request(store.fileClaim, { accounts: ["telegram:main"], ttlMs: 60_000, limit: 20, ...more });

const complete = (inboxId: string, fence: number, parts: InputOf<typeof store.fileComplete>["parts"]) =>
  fixture.gateway.request(store.fileComplete, { inboxId, fence, parts });

const sweep = () => fixture.core.request(store.inboxPending, { epoch: fixture.epoch, limit: 100 });

/** The texts that the next turn starts with, or null when nothing is ready; the turn ends immediately. */
async function nextTurn(sessionId: string): Promise<Part[][] | null> {
  const claim = { ...fixture.fenced(), sessionId, knownSeq: 0, maxClaims: 5 };
  const claimed = await fixture.core.request(store.turnClaim, claim);
  if (claimed.status !== "started") return null;
  const { turnId } = claimed.turn;
  const parts = claimed.messages.filter((message) => message.turnId === turnId).map((message) => message.parts);
  await fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1));
  return parts;
}

test("holds a later text of the conversation until the files are there, and nothing else", async () => {
  const { sessionId, inboxId } = await photo("order", "look");
  await fixture.put("order", saying("what is it?"));
  await fixture.put("order", { ...saying("elsewhere"), conversation: "43" });
  assert.deepEqual(await nextTurn(sessionId), [[note("elsewhere")]]);
  assert.equal(await nextTurn(sessionId), null);
  const listed = (await sweep()).sessions.map((session) => session.sessionId);
  assert.ok(!listed.includes(sessionId));
  const { sha256, mediaType, bytes } = await storeBlob(fixture.gateway, Buffer.from("abc"));
  const blob = { type: "blob" as const, sha256, mediaType, name: "photo", bytes };
  assert.deepEqual(await complete(inboxId, store.firstFileFence, [blob]), { completed: true });
  assert.deepEqual(await nextTurn(sessionId), [[note("look"), blob]]);
  assert.deepEqual(await nextTurn(sessionId), [[note("what is it?")]]);
});

test("does not let a running turn absorb a message whose files are missing, nor a later one", async () => {
  const steer = { mode: "steer" } as const;
  const { sessionId } = await fixture.put("absorb", saying("first"));
  const { turnId } = await fixture.started(sessionId);
  const { inboxId } = await photo("absorb", "look", steer);
  const later = await fixture.put("absorb", { ...saying("what is it?"), ...steer });
  const append = () =>
    fixture.core.request(store.turnAppend, {
      ...fixture.fenced(),
      turnId,
      results: 0,
      notes: [],
      skipped: null,
      absorb: true,
    });
  assert.deepEqual((await append()).inboxIds, []);
  await complete(inboxId, store.firstFileFence, [note("[missing]")]);
  assert.deepEqual((await append()).inboxIds, [inboxId, later.inboxId]);
});

test("coalesces an album only when all its files are there", async () => {
  const album = { mode: "coalesce", windowMs: 0 } as const;
  const first = await photo("album", "one", album);
  const second = await photo("album", "two", album);
  await complete(first.inboxId, store.firstFileFence, [note("1")]);
  assert.equal(await nextTurn(first.sessionId), null);
  await complete(second.inboxId, store.firstFileFence, [note("2")]);
  assert.deepEqual(await nextTurn(first.sessionId), [
    [note("one"), note("1")],
    [note("two"), note("2")],
  ]);
});

test("gives the files to another replica when a claim has expired, and fences the first one", async () => {
  const { inboxId, sessionId } = await photo("fence", "look", {}, { claimMs: 1, dueMs: 60_000 });
  const held = await photo("fence", "held");
  const { messages } = await claimFiles();
  const mine = messages.find((message) => message.inboxId === inboxId);
  assert.ok(mine !== undefined && !messages.some((message) => message.inboxId === held.inboxId));
  assert.deepEqual([mine.fence, mine.files], [store.firstFileFence + 1, [file]]);
  assert.deepEqual((await claimFiles()).messages, []);
  assert.deepEqual(await complete(inboxId, store.firstFileFence, [note("of the first")]), { completed: false });
  const renew = { inboxId, fence: store.firstFileFence, ttlMs: 1_000 };
  await assert.rejects(fixture.gateway.request(store.fileRenew, renew), { code: "FENCED" });
  // A released claim is free immediately, for accounts that the caller serves.
  await fixture.gateway.request(store.fileRenew, { inboxId, fence: mine.fence, ttlMs: 0 });
  assert.deepEqual((await claimFiles({ accounts: ["telegram:other"] })).messages, []);
  const again = (await claimFiles()).messages[0];
  assert.deepEqual([again?.inboxId, again?.fence], [inboxId, mine.fence + 1]);
  assert.deepEqual(await complete(inboxId, mine.fence + 1, [note("once")]), { completed: true });
  assert.deepEqual(await complete(inboxId, mine.fence + 1, [note("twice")]), { completed: false });
  assert.deepEqual(await nextTurn(sessionId), [[note("look"), note("once")]]);
});

test("replaces overdue files by notes, so that the conversation goes on", async () => {
  const { sessionId, inboxId } = await photo("overdue", "look", {}, { claimMs: 1, dueMs: 1 });
  await fixture.put("overdue", saying("and?"));
  await sweep();
  const text = '[the photo "photo" is missing from this message: it could not be fetched in time]';
  assert.deepEqual(await nextTurn(sessionId), [[note("look"), note(text)]]);
  assert.deepEqual(await nextTurn(sessionId), [[note("and?")]]);
  assert.deepEqual(await complete(inboxId, store.firstFileFence, [note("late")]), { completed: false });
});

test("recognizes a redelivery after the files were stored, and goes on when the message is withdrawn", async () => {
  const externalId = randomUUID();
  const { inboxId, sessionId } = await photo("again", "look", { externalId });
  await complete(inboxId, store.firstFileFence, [note("here")]);
  const again = await photo("again", "look", { externalId });
  assert.deepEqual([again.inboxId, again.duplicate, again.same], [inboxId, true, true]);
  assert.deepEqual(await nextTurn(sessionId), [[note("look"), note("here")]]);
  const withdrawn = await photo("again", "never mind");
  await fixture.put("again", saying("after it"));
  await fixture.gateway.request(store.inboxEdit, { inboxId: withdrawn.inboxId, change: { do: "cancel" } });
  assert.deepEqual(await nextTurn(sessionId), [[note("after it")]]);
});

describe("a message with files that a turn's question waits for", () => {
  const ofAnn = { role: "user", contact: { id: "8" } } as const;

  /** A turn of this sender that asks a question in its session. */
  async function asking(key: string, more: Partial<InboundMessage> = {}) {
    const { sessionId } = await fixture.put(key, more);
    const { turnId } = await fixture.started(sessionId);
    const call = { callId: "call-2", tool: "ask_user", class: "once" as const, input: "{}" };
    const step = stepOf(fixture.fenced(), turnId, 1, { toolCalls: [call], finish: null });
    await fixture.core.request(store.stepCommit, step);
    const question = { turnId, n: 2, question: "Which?", options: ["red"], expiresInMs: 60_000, outgoing: [] };
    await fixture.core.request(store.questionAsk, { ...fixture.fenced(), ...question });
    const result = async () => {
      const { steps } = await fixture.core.request(store.turnGet, { turnId });
      return steps.find(({ n }) => n === 2)?.result ?? null;
    };
    return { sessionId, turnId, result };
  }

  async function stored(text: string) {
    const { sha256, mediaType, bytes } = await storeBlob(fixture.gateway, Buffer.from(text));
    return { sha256, mediaType, name: "photo", bytes };
  }

  const turnOf = async (inboxId: string) =>
    (await fixture.gateway.request(store.inboxGet, { inboxId })).turn?.turnId ?? null;

  test("answers with its files when they are there, and does not interrupt the turn before", async () => {
    const { turnId, result } = await asking("answer");
    const { inboxId, runningTurnId } = await photo("answer", "", { mode: "interrupt" });
    assert.deepEqual([runningTurnId, await turnOf(inboxId), await result()], [null, null, null]);
    const attachment = await stored("the answer");
    await complete(inboxId, store.firstFileFence, [{ type: "blob", ...attachment }]);
    assert.equal(await turnOf(inboxId), turnId);
    const { content, attachments, untrusted } = (await result()) ?? {};
    assert.deepEqual(
      [content, attachments, untrusted],
      ["The person answered with the attached files.", [attachment], undefined],
    );
  });

  test("answers with a note when its files are overdue", async () => {
    const { result } = await asking("overdue answer");
    await photo("overdue answer", "1", {}, { claimMs: 1, dueMs: 1 });
    await sweep();
    const text = '[the photo "photo" is missing from this message: it could not be fetched in time]';
    assert.equal((await result())?.content, `The person answered: 1\n\n${text}`);
  });

  test("answers when a repeated completion finds the files stored by an attempt that a crash ended", async () => {
    const { turnId, result } = await asking("crash");
    const { inboxId } = await photo("crash", "1");
    await fixture.sql.query("UPDATE parley.inbox SET parts = $2, files_due = NULL WHERE id = $1", [
      inboxId,
      JSON.stringify([note("1")]),
    ]);
    assert.deepEqual(await complete(inboxId, store.firstFileFence, [note("1")]), { completed: false });
    assert.deepEqual([await turnOf(inboxId), (await result())?.content], [turnId, "The person answered: red"]);
  });

  test("does not answer when it was forwarded", async () => {
    const { turnId, result } = await asking("forward");
    const { inboxId, runningTurnId } = await photo("forward", "1", { forwarded: {}, mode: "interrupt" });
    assert.equal(runningTurnId, turnId);
    await complete(inboxId, store.firstFileFence, [note("[file]")]);
    assert.deepEqual([await turnOf(inboxId), await result()], [null, null]);
  });

  test("answers with a stored file that is untrusted when the sender is not the owner", async () => {
    const { sessionId, result } = await asking("stored", ofAnn);
    const attachment = await stored("by Ann");
    await fixture.put("stored", { ...ofAnn, parts: [note("1"), { type: "blob", ...attachment }] });
    const { content, attachments, untrusted } = (await result()) ?? {};
    assert.deepEqual([content, attachments, untrusted], ["The person answered: red", [attachment], true]);
    const { rows } = await fixture.sql.query("SELECT sha256 FROM parley.blob_refs WHERE session_id = $1", [sessionId]);
    assert.deepEqual(rows, [{ sha256: attachment.sha256 }]);
  });
});

describe("a change by the sender on the platform", () => {
  const changed = (messageId: string, change: InputOf<typeof store.inboxChange>["change"], contactId = "7") =>
    fixture.gateway.request(store.inboxChange, {
      channel: "telegram",
      account: "main",
      conversation: "42",
      messageId,
      contactId,
      change,
    });

  test("replaces the text of a queued message and keeps its files and quotes", async () => {
    const quote = { type: "quote" as const, text: "before", ofAgent: true };
    const { inboxId, sessionId } = await photo("edited", "x", {
      messageId: "m1",
      parts: [quote, note("lok"), file],
    });
    const edit = { do: "text", text: "look" } as const;
    assert.equal((await changed("m1", edit, "8")).outcome, "unknown");
    assert.deepEqual(await changed("m1", edit), { outcome: "changed", running: false, text: "lok" });
    assert.equal((await changed("m1", edit)).outcome, "unchanged");
    await complete(inboxId, store.firstFileFence, [note("[file]")]);
    assert.deepEqual(await nextTurn(sessionId), [[quote, note("look"), note("[file]")]]);
    assert.equal((await changed("m1", { do: "text", text: "later" })).outcome, "processed");
  });

  test("withdraws a queued message that anybody deleted, and nothing else", async () => {
    const { sessionId } = await fixture.put("deleted", { ...saying("oops"), messageId: "m2" });
    await fixture.put("deleted", saying("stays"));
    assert.equal((await changed("m2", { do: "withdraw" }, "moderator")).outcome, "changed");
    assert.equal((await changed("unknown", { do: "withdraw" })).outcome, "unknown");
    assert.deepEqual(await nextTurn(sessionId), [[note("stays")]]);
  });

  test("reports whether a turn that read the message is running", async () => {
    const { sessionId } = await fixture.put("read", { ...saying("a"), messageId: "m3" });
    const { turnId } = await fixture.started(sessionId);
    const edit = { do: "text", text: "b" } as const;
    assert.deepEqual(await changed("m3", edit), { outcome: "processed", running: true, text: "a" });
    await fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1));
    assert.equal((await changed("m3", edit)).running, false);
  });
});
