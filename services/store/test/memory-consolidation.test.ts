// Consolidation on a real PostgreSQL and a real bus: what counts as new, and that an edit, its progress and its cost are atomic.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { noUsage, store, WireError, type InboundMessage, type InputOf, type OutputOf } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import type { Client } from "pg";
import { openStoreFixture, saying, type StoreFixture } from "./support/fixture.ts";

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

type Material = OutputOf<typeof store.memoryMaterial>;
type Edit = Extract<InputOf<typeof store.memoryConsolidate>["outcome"], { kind: "edit" }>;

const put = (path: string, content: string, author: InputOf<typeof store.documentPut>["author"] = "agent") =>
  gateway.request(store.documentPut, { opId: randomUUID(), path, content, author });
const material = (more: Partial<InputOf<typeof store.memoryMaterial>> = {}) =>
  core.request(store.memoryMaterial, { maxChars: 30_000, conversations: true, ...more });
const shown = ({ sources }: Material) => sources.flatMap(({ lines }) => lines.map(({ text }) => text));
const content = async () => (await core.request(store.documentGet, { path: "MEMORY.md" })).document;
const consolidate = (
  seen: Material,
  edit: Partial<Edit> = {},
  more: Partial<InputOf<typeof store.memoryConsolidate>> = {},
) =>
  core.request(store.memoryConsolidate, {
    opId: randomUUID(),
    epoch: fixture.epoch,
    model: "small",
    usage: { ...noUsage, inputTokens: 100, outputTokens: 10 },
    costMicros: 700,
    outcome: {
      kind: "edit",
      expectedVersion: seen.memory.version,
      remove: [],
      add: [],
      maxChars: 10_000,
      progress: seen.progress,
      ...edit,
    },
    ...more,
  });

/** A person sends a message in their own conversation, and its turn ends. */
async function said(text: string, overrides: Partial<InboundMessage> = {}, ends = true): Promise<string> {
  const { sessionId, turnId } = await fixture.begun({ ...saying(text), ...overrides });
  if (ends) await sql.query("UPDATE parley.turns SET state = 'done', finished_at = now() WHERE id = $1", [turnId]);
  return sessionId;
}

/** Consolidates everything that earlier tests left. */
async function takeAllIn(): Promise<void> {
  for (let seen = await material(); seen.sources.length > 0; seen = await material()) await consolidate(seen);
}

test("new lines of day notes and the owner's messages are new once, and additions are new again", async () => {
  await takeAllIn();
  await put("memory/2026-11-20.md", "# 2026-11-20\n\n- The van is sold.\n");
  const sessionId = await said("I now drive a bicycle.");
  const first = await material();
  assert.deepEqual(
    first.sources.map(({ place, date }) => [place, place.startsWith("memory/") ? date : null]),
    [
      ["memory/2026-11-20.md", "2026-11-20"],
      [`sessions/${sessionId}`, null],
    ],
  );
  assert.deepEqual(first.sources[0]?.lines.at(-1), { number: 3, text: "- The van is sold." });
  assert.deepEqual(await material(), first, "reading consolidates nothing");
  assert.equal((await consolidate(first)).status, "unchanged");
  assert.deepEqual((await material()).sources, []);
  await put("memory/2026-11-20.md", "# 2026-11-20\n\n- The van is sold.\n- Its keys are gone.\n");
  assert.deepEqual(shown(await material()), ["- Its keys are gone."]);
});

test("notes without relevant lines do not block other notes", async () => {
  await takeAllIn();
  for (let day = 1; day <= 25; day++)
    await put(`memory/2019-01-${String(day).padStart(2, "0")}.md`, "- a rumour\n", "untrusted");
  await put("memory/2019-02-01.md", "- The roof was mended.\n");
  assert.deepEqual(shown(await material({ conversations: false })), ["- The roof was mended."]);
  await takeAllIn();
  assert.deepEqual((await material()).progress, [], "nothing is processed twice");
});

test("days of groups are processed once and do not skip messages of other conversations", async () => {
  await takeAllIn();
  const alone = await said("I moved to Lisbon.");
  const group = await said("hello all", { direct: false });
  // The group's day also occurs in the other conversation, after messages that are still open.
  await sql.query("UPDATE parley.messages SET created_at = created_at - interval '3 days' WHERE session_id = $1", [
    alone,
  ]);
  const seen = await material();
  assert.deepEqual(shown(seen), ["I moved to Lisbon."]);
  assert.deepEqual(
    seen.progress.map((step) => "sessionId" in step && step.sessionId),
    [alone],
  );
  const { rows } = await sql.query("SELECT FROM parley.memory_consolidated_sessions WHERE session_id = $1", [group]);
  assert.equal(rows.length, 1);
});

test("material excludes other people, groups, running turns and untrusted content", async () => {
  await takeAllIn();
  await said("SECRET of a guest", { role: "guest" });
  await said("SECRET of a group", { direct: false });
  await said("SECRET of a running turn", {}, false);
  await put("memory/2026-11-21.md", "- mine\n");
  await put("memory/2026-11-21.md", "- mine\n- SECRET instruction\n", "untrusted");
  await put("memory/topics.md", "- SECRET: no note of a day\n");
  await put("MEMORY.md", "# Memory\n");
  await put("MEMORY.md", "# Memory\n- SECRET rumour\n", "untrusted");
  const seen = await material();
  assert.deepEqual(shown(seen), ["- mine"]);
  assert.deepEqual(seen.memory.lines, [{ text: "# Memory" }, { text: null }]);
  assert.doesNotMatch(JSON.stringify(seen), /SECRET/);
  assert.equal((await consolidate(seen, { remove: [{ from: 2, to: 2 }] })).status, "refused");
  assert.deepEqual(shown(await material()), ["- mine"], "a refused edit consolidates nothing");
  assert.equal((await consolidate(seen, { add: [{ after: 2, text: "- fact" }] })).status, "saved");
  const document = await content();
  assert.equal(document?.content, "# Memory\n- SECRET rumour\n- fact\n");
  assert.equal(document?.author, "untrusted", "as long as it contains an untrusted line");
  const again = await material();
  assert.deepEqual(again.memory.lines, [{ text: "# Memory" }, { text: null }, { text: "- fact" }]);
});

test("an edit creates one version by the agent, and the owner's lines stay the owner's", async () => {
  await takeAllIn();
  await put("MEMORY.md", "# Things\n- Mine\n- Old\n", "owner");
  await put("memory/2026-11-22.md", "- New\n");
  const seen = await material();
  const done = await consolidate(seen, { remove: [{ from: 3, to: 3 }], add: [{ after: 3, text: "- New" }] });
  assert.equal(done.status, "saved");
  const document = await content();
  assert.deepEqual(
    [document?.content, document?.author, document?.version],
    ["# Things\n- Mine\n- New\n", "agent", seen.memory.version + 1],
  );
  const { rows } = await sql.query("SELECT authors FROM parley.memory_documents WHERE path = 'MEMORY.md'");
  assert.deepEqual(rows, [{ authors: "ooa" }]);
  const before = await fixture.gateway.request(store.documentGet, { path: "MEMORY.md", version: seen.memory.version });
  assert.equal(before.document?.content, "# Things\n- Mine\n- Old\n", "and can be put back");
});

test("a concurrent edit by a person wins: only the cost of the call is recorded", async () => {
  await takeAllIn();
  await put("memory/2026-11-22.md", "- Newer\n");
  const seen = await material();
  await put("MEMORY.md", "# Mine alone\n", "owner");
  assert.equal((await consolidate(seen, { add: [{ after: 0, text: "- late" }] })).status, "conflict");
  assert.equal((await content())?.content, "# Mine alone\n");
  const after = await material();
  assert.deepEqual(shown(after), ["- Newer"]);
  assert.equal(after.today.calls, seen.today.calls + 1);
  assert.equal(after.today.cost.micros, seen.today.cost.micros + 700);
});

test("a repeated operation has no effect, and a stale leader is refused", async () => {
  await takeAllIn();
  await put("memory/2026-11-22.md", "- Newest\n");
  const seen = await material();
  const opId = randomUUID();
  const edit = { add: [{ after: 0, text: "- once" }] };
  const first = await consolidate(seen, edit, { opId });
  assert.deepEqual(await consolidate(seen, edit, { opId }), first);
  assert.equal((await content())?.content.match(/- once/g)?.length, 1);
  assert.equal((await material()).today.calls, seen.today.calls + 1);
  await assert.rejects(consolidate(await material(), {}, { epoch: fixture.epoch - 1 }), (error) =>
    WireError.is(error, "STALE_EPOCH"),
  );
});

test("material above the limit follows in the next calls, line by line", async () => {
  await takeAllIn();
  const lines = Array.from({ length: 30 }, (_, index) => `- fact ${index} ${"x".repeat(60)}`);
  await put("memory/2026-11-19.md", `${lines.join("\n")}\n`);
  const seen: string[] = [];
  let calls = 0;
  for (
    let next = await material({ maxChars: 500 });
    next.sources.length > 0;
    next = await material({ maxChars: 500 })
  ) {
    seen.push(...shown(next));
    await consolidate(next);
    calls += 1;
  }
  assert.deepEqual(seen, lines);
  assert.ok(calls > 3);
});

test("a call without an edit is only counted, and all calls are in the usage of their day", async () => {
  await takeAllIn();
  await put("memory/2026-11-18.md", "- kept\n");
  const { today } = await material();
  const day = new Date().toISOString().slice(0, 10);
  const of = async () =>
    (await core.request(store.usageReport, { sinceDay: day })).rows.find(({ model }) => model === "small");
  const reported = await of();
  const outcome = { kind: "cancelled", reason: "somebody spoke" } as const;
  assert.deepEqual(await consolidate(await material(), {}, { outcome, costMicros: null }), { status: "recorded" });
  const after = await material();
  assert.deepEqual(shown(after), ["- kept"]);
  assert.equal(after.today.calls, today.calls + 1);
  assert.equal((await of())?.calls, (reported?.calls ?? 0) + 1);
  assert.equal((await of())?.cost.unpricedCalls, (reported?.cost.unpricedCalls ?? 0) + 1);
});

test("a MEMORY.md that is too long to be sent is not consolidated", async () => {
  await put("MEMORY.md", `${"x".repeat(60)}\n`.repeat(2_500), "owner");
  const seen = await material();
  assert.deepEqual([seen.tooLong, seen.sources, seen.progress], [true, [], []]);
});
