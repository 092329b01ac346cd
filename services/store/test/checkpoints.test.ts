// Rows of checkpoints and rewinds: the first to keep a path is believed, one rewind at a time, and what is old goes.
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, type KeptFile } from "@parley/contracts";
import { Cleanup, type StoreStack } from "@parley/testing";
import { Client } from "pg";
import { openDatabase } from "../src/database.ts";
import { keep } from "../src/verbs/checkpoints.ts";
import { failsWith, openScene, saying, type Scene } from "./support/scene.ts";

const cleanup = new Cleanup();
let scene: Scene;
let stack: StoreStack;
let core: Bus;
let runner: Bus;

before(async () => {
  scene = await openScene(cleanup);
  ({ stack, core, runner } = scene);
});
after(() => cleanup[Symbol.asyncDispose]());

const hash = (content: string) => createHash("sha256").update(content).digest("hex");
const file = (path: string, content: string): KeptFile => ({
  kind: "file",
  path,
  sha256: hash(content),
  size: content.length,
  mode: 0o644,
});

/** A turn that has ended. */
async function turn(sessionKey: string) {
  const { sessionId } = await scene.put(sessionKey, { ...saying("do it"), replyTo: null });
  const { turnId } = await scene.started(sessionId);
  await core.request(store.turnFinish, {
    ...scene.fenced(),
    turnId,
    parts: [],
    model: null,
    unsettled: "Interrupted.",
    outgoing: [],
    finish: { state: "done", exitReason: "end_turn", text: "done" },
  });
  return { sessionId, turnId };
}

const track = (checkpointId: string, files: KeptFile[]) =>
  runner.request(store.checkpointTrack, { checkpointId, files, documents: [] });
const begin = (of: { sessionId: string; turnId: string }, rewindId: string, by: string, ttlMs = 60_000) =>
  runner.request(store.rewindBegin, { ...of, rewindId, runner: by, ttlMs });
const filesOf = (of: { sessionId: string; turnId: string }, afterPath: string | null = null) =>
  runner.request(store.checkpointFiles, { ...of, rewindId: null, afterPath });

test("the first to keep a path is believed, also when twenty say so at once", async () => {
  const ended = await turn("first");
  await track(ended.turnId, [file("a", "before")]);
  await Promise.all(
    Array.from({ length: 20 }, (_, index) => track(ended.turnId, [file("a", `${index}`), file(`b${index}`, "x")])),
  );
  const { files } = await filesOf(ended);
  assert.equal(files.length, 21);
  assert.deepEqual(files[0], file("a", "before"));
});

test("pages come in the order of paths, and each path once", async () => {
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

test("two who keep the same paths in different orders do not wait against each other", async () => {
  const ended = await turn("orders");
  // The row of the checkpoint is there: nobody waits for that one.
  await track(ended.turnId, [file("0", "x")]);
  // Without the bus, which would ask again after a deadlock.
  const database = openDatabase(stack.postgres.storeUrl, 8, () => undefined);
  for (let round = 0; round < 20; round++) {
    const files = Array.from({ length: 150 }, (_, index) => file(`${round}/${index}`, "x"));
    const orders = [files, files.toReversed(), files, files.toReversed()];
    await Promise.all(orders.map((each) => keep(database, { checkpointId: ended.turnId, files: each, documents: [] })));
  }
  await database.pool.end();
});

test("a checkpoint of no turn is refused", async () => {
  await assert.rejects(track(randomUUID(), [file("a", "x")]), failsWith("NOT_FOUND"));
});

test("one rewind at a time owns the workspace; a dead one's is taken over, and its fence is over", async () => {
  const ended = await turn("owned");
  const [one, two] = [randomUUID(), randomUUID()];
  const first = await begin(ended, one, "a#1");
  assert.equal(first.status, "granted");
  assert.equal((await begin(ended, two, "b#1")).status, "busy");
  assert.equal((await begin(ended, two, "a#1")).status, "busy", "the same life has the other one in its hands");
  assert.deepEqual(await track(ended.turnId, [file("late", "x")]), { rewinding: true });
  const again = await begin(ended, one, "a#2");
  assert.ok(again.status === "granted" && again.fence > first.fence);
  await assert.rejects(
    runner.request(store.rewindRenew, { rewindId: one, fence: first.fence, ttlMs: 1_000 }),
    failsWith("FENCED"),
  );
  const other = await begin(ended, two, "a#3");
  assert.ok(other.status === "granted");
  await assert.rejects(
    runner.request(store.rewindRenew, { rewindId: one, fence: again.fence, ttlMs: 1_000 }),
    failsWith("FENCED"),
  );
  const report = {
    checkpointId: two,
    counts: { restored: 0, removed: 0, skipped: 0, failed: 0 },
    files: [],
    omitted: 0,
  };
  await runner.request(store.rewindEnd, { rewindId: two, fence: other.fence, report });
  await runner.request(store.rewindEnd, { rewindId: two, fence: other.fence, report });
  assert.deepEqual(await begin(ended, two, "b#1"), { status: "done", report });
  await assert.rejects(begin({ ...ended, turnId: randomUUID() }, two, "b#1"), failsWith("CONFLICT"));
});

test("many who begin at once: one is granted", async () => {
  const ended = await turn("many");
  const begun = await Promise.all(Array.from({ length: 10 }, (_, index) => begin(ended, randomUUID(), `r${index}#1`)));
  assert.deepEqual(begun.map(({ status }) => status).toSorted(), [...Array<string>(9).fill("busy"), "granted"]);
});

test("old checkpoints go with their files; a content is needed as long as one names it", async () => {
  const [old, young] = [await turn("aged"), await turn("aged")];
  await query("UPDATE parley.rewinds SET state = 'failed'", []);
  await track(old.turnId, [file("a", "only old"), file("b", "both")]);
  await track(young.turnId, [file("b", "both")]);
  const sha256 = [hash("only old"), hash("both"), hash("nobody's")];
  const unreferenced = async () => (await runner.request(store.checkpointUnreferenced, { sha256 })).sha256;
  assert.deepEqual(await unreferenced(), [hash("nobody's")]);
  await query("UPDATE parley.checkpoints SET at = at - interval '31 days' WHERE id = $1", [old.turnId]);
  assert.deepEqual(await runner.request(store.checkpointForget, { olderThanDays: 30 }), { forgotten: 1, more: false });
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
