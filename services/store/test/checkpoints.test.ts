// Rows of checkpoints and rewinds: the first record of a path counts, one rewind runs at a time, and old rows are deleted.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, type CapturedFile } from "@parley/contracts";
import { Cleanup, type StoreStack } from "@parley/testing";
import { Client } from "pg";
import { openDatabase } from "../src/db/database.ts";
import { deleteExpired } from "../src/retention/retention.ts";
import { recordFiles } from "../src/handlers/checkpoints/checkpoints.ts";
import { failsWith, openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let stack: StoreStack;
let gateway: Bus;
let core: Bus;
let call: Awaited<ReturnType<typeof openCall>>;
let runner: Bus;

before(async () => {
  fixture = await openStoreFixture(cleanup);
  ({ stack, gateway, core, runner } = fixture);
  call = await openCall();
});
after(() => cleanup[Symbol.asyncDispose]());

const hash = (content: string) => createHash("sha256").update(content).digest("hex");
const file = (path: string, content: string): CapturedFile => ({
  kind: "file",
  path,
  sha256: hash(content),
  size: content.length,
  mode: 0o644,
});

/** A turn that has ended. */
/** Runs a turn; `work` happens while it runs. */
async function turn(sessionKey: string, work?: (of: { sessionId: string; turnId: string }) => Promise<void>) {
  const { sessionId } = await fixture.put(sessionKey, { ...saying("do it"), replyTo: null });
  const { turnId } = await fixture.started(sessionId);
  await work?.({ sessionId, turnId });
  await core.request(store.turnFinish, {
    ...fixture.fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "Interrupted.",
    outgoing: [],
    finish: { state: "done", exitReason: "end_turn", text: "done" },
  });
  return { sessionId, turnId };
}

/** An open call of a root turn. */
async function openCall() {
  const { sessionId } = await fixture.put("calling", { ...saying("do it"), replyTo: null });
  const { turnId } = await fixture.started(sessionId);
  const toolCalls = [{ callId: "call", tool: "write", class: "once" as const, input: "{}" }];
  const step = { stopReason: "tool_use", parts: [], toolCalls, finish: null };
  await core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1, step));
  return { sessionId, turnId, n: 2 };
}

const track = async (checkpointId: string, files: CapturedFile[]) => {
  const by = { grant: fixture.grant({ ...call, rootTurnId: checkpointId }) };
  return runner.request(store.checkpointTrack, { by, files });
};
const permit = async ({ sessionId, turnId }: { sessionId: string; turnId: string }, rewindId: string) => ({
  rewindId,
  secret: (await gateway.request(store.rewindPermit, { rewindId, sessionId, turnId })).secret,
});
const begin = async (of: { sessionId: string; turnId: string }, rewindId: string, by: string, ttlMs = 60_000) =>
  runner.request(store.rewindBegin, { rewind: await permit(of, rewindId), runner: by, ttlMs });
const processKey = "k".repeat(32);
/** Begins a background process for a turn's session, as the tool-runner `by`. */
const beginProcess = async (of: { sessionId: string; turnId: string }, id: string, by: string) => {
  const grant = fixture.grant({ ...of, n: 1 });
  const input = {
    grant,
    id,
    runner: by,
    keyHash: createHash("sha256").update(processKey).digest("hex"),
    command: "sleep 1",
    notify: false,
  };
  await runner.request(store.processBegin, { ...input, startedAt: new Date().toISOString() });
};
const filesOf = async (of: { sessionId: string; turnId: string }, afterPath: string | null = null) =>
  runner.request(store.checkpointFiles, { rewind: await permit(of, randomUUID()), afterPath });

test("the first record of a path counts, also with twenty concurrent ones", async () => {
  const ended = await turn("first");
  await track(ended.turnId, [file("a", "before")]);
  await Promise.all(
    Array.from({ length: 20 }, (_, index) => track(ended.turnId, [file("a", `${index}`), file(`b${index}`, "x")])),
  );
  const { files } = await filesOf(ended);
  assert.equal(files.length, 21);
  assert.deepEqual(files[0], file("a", "before"));
});

test("pages are sorted by path and contain each path once", async () => {
  const ended = await turn("pages");
  const paths = Array.from({ length: 400 }, (_, index) => `päge/${index}`).toSorted();
  for (let from = 0; from < paths.length; from += 100) {
    await track(
      ended.turnId,
      paths.slice(from, from + 100).map((path) => ({ kind: "absent", path })),
    );
  }
  const read: string[] = [];
  for (let more = true; more;) {
    const page = await filesOf(ended, read.at(-1) ?? null);
    read.push(...page.files.map(({ path }) => path));
    more = page.more;
  }
  assert.deepEqual(read, paths);
});

test("two writers of the same paths in different orders do not deadlock", async () => {
  const ended = await turn("orders");
  // The checkpoint's row exists, so no writer waits for it.
  await track(ended.turnId, [file("0", "x")]);
  // Without the bus, which would retry after a deadlock.
  const database = openDatabase(stack.postgres.storeUrl, 8, () => undefined);
  for (let round = 0; round < 20; round++) {
    const files = Array.from({ length: 150 }, (_, index) => file(`${round}/${index}`, "x"));
    const orders = [files, files.toReversed(), files, files.toReversed()];
    await Promise.all(orders.map((each) => recordFiles(database, ended.turnId, each)));
  }
  await database.pool.end();
});

test("a rewind is not granted while a background process runs on a tool-runner that has not reported", async () => {
  const ended = await turn("background", (of) => beginProcess(of, "1@writer", "writer#1"));
  const request = async (idle: string[]) =>
    runner.request(store.rewindBegin, {
      rewind: await permit(ended, rewindId),
      runner: "a#1",
      ttlMs: 60_000,
      idle,
    });
  const rewindId = randomUUID();
  const unconfirmed = { status: "unconfirmed", processId: "1@writer" };
  assert.deepEqual(await request([]), unconfirmed);
  assert.deepEqual(await request(["a", "writer-2"]), unconfirmed);
  const begun = await request(["writer"]);
  assert.ok(begun.status === "granted");
  const rewind = await permit(ended, rewindId);
  await runner.request(store.rewindUpdate, { rewind, fence: begun.fence, change: { report: null } });
  await runner.request(store.processEnd, { id: "1@writer", key: processKey, text: "ended" });
  const after = await request([]);
  assert.ok(after.status === "granted");
  await runner.request(store.rewindUpdate, { rewind, fence: after.fence, change: { report: null } });
});

test("a checkpoint of an unknown turn is refused", async () => {
  await assert.rejects(track(randomUUID(), [file("a", "x")]), failsWith("NOT_FOUND"));
});

test("one rewind owns the workspace at a time, and a new instance fences a crashed one", async () => {
  const ended = await turn("owned");
  const [one, two] = [randomUUID(), randomUUID()];
  const permits = { one: await permit(ended, one), two: await permit(ended, two) };
  const first = await begin(ended, one, "a#1");
  assert.equal(first.status, "granted");
  assert.equal((await begin(ended, two, "b#1")).status, "busy");
  assert.equal((await begin(ended, two, "a#1")).status, "busy", "the same instance holds the other rewind");
  assert.deepEqual(await track(ended.turnId, [file("late", "x")]), { rewinding: true });
  const again = await begin(ended, one, "a#2");
  assert.ok(again.status === "granted" && again.fence > first.fence);
  await assert.rejects(
    runner.request(store.rewindUpdate, { rewind: permits.one, fence: first.fence, change: { ttlMs: 1_000 } }),
    failsWith("FENCED"),
  );
  const other = await begin(ended, two, "a#3");
  assert.ok(other.status === "granted");
  await assert.rejects(
    runner.request(store.rewindUpdate, { rewind: permits.one, fence: again.fence, change: { ttlMs: 1_000 } }),
    failsWith("FENCED"),
  );
  const report = {
    checkpointId: two,
    counts: { restored: 0, removed: 0, skipped: 0, failed: 0 },
    files: [],
    omitted: 0,
  };
  await runner.request(store.rewindUpdate, { rewind: permits.two, fence: other.fence, change: { report } });
  await runner.request(store.rewindUpdate, { rewind: permits.two, fence: other.fence, change: { report } });
  assert.deepEqual(await begin(ended, two, "b#1"), { status: "done", report });
  await assert.rejects(begin({ ...ended, turnId: randomUUID() }, two, "b#1"), failsWith("CONFLICT"));
});

test("overlapping requests of one runner for its rewind have the same fence", async () => {
  const ended = await turn("overlapping");
  const rewindId = randomUUID();
  const [first, second] = await Promise.all([begin(ended, rewindId, "a#1"), begin(ended, rewindId, "a#1")]);
  assert.equal(first.status, "granted");
  assert.deepEqual(second, first);
  const rewind = await permit(ended, rewindId);
  await runner.request(store.rewindUpdate, { rewind, fence: first.fence, change: { report: null } });
  const again = await begin(ended, rewindId, "a#1");
  assert.ok(again.status === "granted" && again.fence > first.fence, "a new attempt after a failed one");
  await runner.request(store.rewindUpdate, { rewind, fence: again.fence, change: { report: null } });
});

test("one of many concurrent rewinds is granted", async () => {
  const ended = await turn("many");
  const begun = await Promise.all(Array.from({ length: 10 }, (_, index) => begin(ended, randomUUID(), `r${index}#1`)));
  assert.deepEqual(begun.map(({ status }) => status).toSorted(), [...Array<string>(9).fill("busy"), "granted"]);
});

test("old checkpoints are deleted with their files, and referenced content stays", async () => {
  const [old, young] = [await turn("aged"), await turn("aged")];
  await query("UPDATE parley.rewinds SET state = 'failed'", []);
  await track(old.turnId, [file("a", "only old"), file("b", "both")]);
  await track(young.turnId, [file("b", "both")]);
  const sha256 = [hash("only old"), hash("both"), hash("nobody's")];
  const unreferenced = async () => (await runner.request(store.checkpointUnreferenced, { sha256 })).sha256;
  assert.deepEqual(await unreferenced(), [hash("nobody's")]);
  await query("UPDATE parley.checkpoints SET at = at - interval '31 days' WHERE id = $1", [old.turnId]);
  const database = openDatabase(stack.postgres.storeUrl, 1, () => undefined);
  await deleteExpired(database, {
    opRetentionHours: 24,
    eventRetentionDays: 90,
    auditRetentionDays: 0,
    checkpointDays: 30,
  });
  await database.pool.end();
  assert.deepEqual(await unreferenced(), [hash("only old"), hash("nobody's")]);
  assert.deepEqual((await filesOf(young)).files, [file("b", "both")]);
});

async function query(text: string, values: unknown[]): Promise<void> {
  const client = new Client({ connectionString: stack.postgres.ownerUrl });
  await client.connect();
  try {
    await client.query(text, values);
  } finally {
    await client.end();
  }
}
