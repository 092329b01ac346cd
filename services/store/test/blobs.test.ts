// Content by its hash on a real PostgreSQL and a real bus: stored once, atomically, and as long as a session refers to it.
import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fetchBlob, storeBlob, type Bus } from "@parley/bus";
import { readBaseConfig } from "@parley/chassis";
import { store, WireError, type InboundMessage, type Part } from "@parley/contracts";
import { Cleanup, startStoreStack, temporaryFolder, type StoreStack } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { collectUnreferenced } from "../src/retention/blobs.ts";
import { filesystemBackend } from "../src/blobs/filesystem.ts";
import { backendsOf } from "../src/blobs/open.ts";
import { readConfig } from "../src/config.ts";
import { openDatabase, type Database } from "../src/db/database.ts";
import { start } from "../src/service.ts";

const cleanup = new Cleanup();
let stack: StoreStack;
let gateway: Bus;
let core: Bus;
let database: Database;
const silent = { warn: () => undefined } as unknown as Parameters<typeof collectUnreferenced>[2];

before(async () => {
  stack = await startStoreStack(cleanup);
  [gateway, core] = await Promise.all([stack.bus("channel-gateway"), stack.bus("agent-core")]);
  database = openDatabase(stack.postgres.storeUrl, 4, () => undefined);
  cleanup.add(() => database.pool.end());
});
after(() => cleanup[Symbol.asyncDispose]());

/** A picture by structure: it declares one pixel and contains noise. */
function png(noise: number): Buffer {
  const part = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)]);
  };
  const header = Buffer.from("00000001000000010806000000", "hex");
  const signature = Buffer.from("89504e470d0a1a0a", "hex");
  return Buffer.concat([
    signature,
    part("IHDR", header),
    part("IDAT", randomBytes(noise)),
    part("IEND", Buffer.alloc(0)),
  ]);
}
const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
const refused =
  (code: Parameters<typeof WireError.is>[1], words = /./) =>
  (error: unknown) =>
    WireError.is(error, code ?? "INTERNAL") && words.test(error.message);
const begin = (content: Uint8Array, more: Partial<{ sha256: string; bytes: number }> = {}) =>
  gateway.request(store.blobBegin, {
    opId: randomUUID(),
    sha256: hashOf(content),
    bytes: content.length,
    ...more,
  });
const chunk = (content: Uint8Array, n: number) =>
  Buffer.from(content.subarray(n * store.blobChunkBytes, (n + 1) * store.blobChunkBytes)).toString("base64");
async function uploadIdOf(content: Uint8Array, more: Partial<{ sha256: string; bytes: number }> = {}) {
  const begun = await begin(content, more);
  assert.ok(begun.status === "wanted");
  return begun.uploadId;
}
const isKept = async (sha256: string) => (await core.request(store.blobHead, { sha256: [sha256] })).blobs.length === 1;
const age = (sha256: string, hours: number) =>
  database.pool.query("UPDATE parley.blobs SET touched_at = now() - $2 * interval '1 hour' WHERE sha256 = $1", [
    sha256,
    hours,
  ]);

function message(parts: Part[], conversation = randomUUID()): { message: InboundMessage; sessionKey: string } {
  return {
    sessionKey: conversation,
    message: {
      channel: "http",
      account: "default",
      externalId: randomUUID(),
      conversation,
      contact: { id: "alice" },
      role: "owner",
      origin: "user",
      parts: parts as InboundMessage["parts"],
      replyTo: null,
    },
  };
}
const attached = (content: Uint8Array): Part => ({
  type: "blob",
  sha256: hashOf(content),
  mediaType: "image/png",
  name: "a.png",
  bytes: content.length,
});

test("content of several chunks is returned byte for byte, with the detected type", async () => {
  const content = png(3 * store.blobChunkBytes + 17);
  const kept = await storeBlob(gateway, content);
  assert.deepEqual(kept, { sha256: hashOf(content), bytes: content.length, mediaType: "image/png" });
  assert.deepEqual(await fetchBlob(core, kept.sha256), content);
});

test("20 MiB are stored and fetched completely", async () => {
  const content = randomBytes(20 * 1024 * 1024);
  const { sha256, mediaType } = await storeBlob(gateway, content);
  assert.equal(mediaType, "application/octet-stream");
  assert.equal(hashOf(await fetchBlob(core, sha256)), sha256);
});

/** A quarter of the connections of the store. */
const permits = 4;

test("transfers that wait for the database use a quarter of the connections", async () => {
  const content = randomBytes(20 * store.blobChunkBytes);
  const uploadId = await uploadIdOf(content);
  const waiting = async () => {
    const { rowCount } = await database.pool.query(
      "SELECT FROM pg_locks WHERE relation = 'parley.blob_upload_chunks'::regclass AND NOT granted",
    );
    return rowCount ?? 0;
  };
  const locker = await database.pool.connect();
  await locker.query("BEGIN");
  // The connection waits as long as the requests below need.
  await locker.query("SET LOCAL idle_in_transaction_session_timeout = 0");
  await locker.query("LOCK TABLE parley.blob_upload_chunks IN EXCLUSIVE MODE");
  const puts = Array.from({ length: 20 }, (_, n) =>
    gateway.request(store.blobPut, { uploadId, n, data: chunk(content, n) }),
  );
  try {
    await pollUntil(async () => (await waiting()) >= permits, "the permits to be used");
    // The store has received these requests after the transfers.
    for (const text of ["one", "two", "three"]) {
      const { duplicate } = await gateway.request(store.inboxPut, message([{ type: "text", text }]));
      assert.equal(duplicate, false);
    }
    assert.equal(await waiting(), permits);
  } finally {
    await locker.query("ROLLBACK");
    locker.release();
  }
  await Promise.all(puts);
});

test("existing content is not uploaded again and has one row", async () => {
  const content = png(1_000);
  await storeBlob(gateway, content);
  assert.equal((await begin(content)).status, "kept");
  const { rows } = await database.pool.query("SELECT FROM parley.blobs WHERE sha256 = $1", [hashOf(content)]);
  assert.equal(rows.length, 1);
});

test("concurrent uploads of the same content all succeed", async () => {
  const content = randomBytes(store.blobChunkBytes + 1);
  const kept = await Promise.all(Array.from({ length: 6 }, () => storeBlob(gateway, content)));
  assert.deepEqual(new Set(kept.map(({ sha256 }) => sha256)), new Set([hashOf(content)]));
  assert.deepEqual(await fetchBlob(core, hashOf(content)), content);
});

test("every step can be repeated, and chunks can arrive in any order", async () => {
  const content = randomBytes(2 * store.blobChunkBytes + 5);
  const uploadId = await uploadIdOf(content);
  for (const n of [2, 0, 2, 1, 0]) await gateway.request(store.blobPut, { uploadId, n, data: chunk(content, n) });
  const first = await gateway.request(store.blobCommit, { uploadId });
  assert.deepEqual(await gateway.request(store.blobCommit, { uploadId }), first);
  await gateway.request(store.blobPut, { uploadId, n: 0, data: chunk(content, 0) });
  assert.deepEqual(await fetchBlob(core, first.blob.sha256), content);
});

test("a wrong hash, a missing chunk or a chunk of the wrong size stores nothing", async () => {
  const content = randomBytes(store.blobChunkBytes + 10);
  const lie = hashOf(randomBytes(8));
  const wrong = await uploadIdOf(content, { sha256: lie });
  for (const n of [0, 1]) await gateway.request(store.blobPut, { uploadId: wrong, n, data: chunk(content, n) });
  await assert.rejects(
    gateway.request(store.blobCommit, { uploadId: wrong }),
    refused("INVALID_INPUT", /does not have the announced hash/),
  );
  assert.equal(await isKept(lie), false);

  const partial = await uploadIdOf(content);
  await gateway.request(store.blobPut, { uploadId: partial, n: 1, data: chunk(content, 1) });
  await assert.rejects(
    gateway.request(store.blobCommit, { uploadId: partial }),
    refused("INVALID_INPUT", /chunk 0 of 2 is missing/),
  );
  for (const [n, data] of [
    [0, "AAAA"],
    [1, chunk(content, 0)],
    [2, "AAAA"],
  ] as const) {
    await assert.rejects(
      gateway.request(store.blobPut, { uploadId: partial, n, data }),
      refused("INVALID_INPUT", /does not fit the announced size/),
    );
  }
  await assert.rejects(
    gateway.request(store.blobPut, { uploadId: randomUUID(), n: 0, data: "AAAA" }),
    refused("NOT_FOUND"),
  );
});

test("content that is too large or empty is refused before the upload", async () => {
  await assert.rejects(
    begin(Buffer.alloc(1), { bytes: 20 * 1024 * 1024 + 1 }),
    refused("TOO_LARGE", /20971521 bytes; the limit is 20971520/),
  );
  await assert.rejects(begin(Buffer.alloc(0)), refused("INVALID_INPUT", /empty file/));
});

test("detects the type of text, pictures, documents, archives and unknown bytes", async () => {
  const types: [string, Buffer][] = [
    ["text/plain", Buffer.from("Grüße, 世界\r\n\t\u001b[1mbold\u001b[0m\n")],
    ["application/pdf", Buffer.from("%PDF-1.7\n1 0 obj\nendobj\n")],
    ["image/jpeg", Buffer.concat([Buffer.from("ffd8ffe000104a46494600010100000100010000", "hex"), randomBytes(64)])],
    ["image/gif", Buffer.concat([Buffer.from("GIF89a"), randomBytes(64)])],
    ["application/octet-stream", Buffer.from([0, 1, 2, 3, 255])],
    ["application/octet-stream", Buffer.concat([Buffer.from("text and then"), Buffer.from([0xff, 0xfe, 0x00])])],
    ["text/plain", Buffer.from("<script>alert(1)</script>")],
  ];
  for (const [expected, content] of types) {
    assert.equal((await storeBlob(gateway, content)).mediaType, expected, content.toString("latin1").slice(0, 20));
  }
});

test("detects text when characters cross chunk borders", async () => {
  const content = Buffer.from(`x${"ü世😀".repeat(60_000)}`);
  assert.ok(content.length > 2 * store.blobChunkBytes);
  assert.equal((await storeBlob(gateway, content)).mediaType, "text/plain");
});

test("a message may refer only to existing content", async () => {
  const ghost = randomBytes(10);
  await assert.rejects(
    gateway.request(store.inboxPut, message([attached(ghost)])),
    refused("INVALID_INPUT", /there is no attachment/),
  );
  await storeBlob(gateway, ghost);
  const { sessionId } = await gateway.request(store.inboxPut, message([attached(ghost)]));
  const { rows } = await database.pool.query("SELECT sha256 FROM parley.blob_refs WHERE session_id = $1", [sessionId]);
  assert.deepEqual(rows, [{ sha256: hashOf(ghost) }]);
});

test("unreferenced content is deleted after its retention, and referenced content is not", async () => {
  const [loose, young, bound] = [png(10), png(20), png(30)];
  for (const content of [loose, young, bound]) await storeBlob(gateway, content);
  await gateway.request(store.inboxPut, message([attached(bound)]));
  await age(hashOf(loose), 25);
  await age(hashOf(bound), 25);
  assert.equal(await collectUnreferenced(database, { keepHours: 24, backends: backendsOf([]) }, silent), 1);
  assert.deepEqual(await Promise.all([loose, young, bound].map((content) => isKept(hashOf(content)))), [
    false,
    true,
    true,
  ]);
  await assert.rejects(fetchBlob(core, hashOf(loose)), refused("NOT_FOUND"));
  await storeBlob(gateway, loose);
  assert.deepEqual(await fetchBlob(core, hashOf(loose)), loose);
});

test("announcing existing content extends its retention", async () => {
  const content = png(40);
  await storeBlob(gateway, content);
  await age(hashOf(content), 25);
  assert.equal((await begin(content)).status, "kept");
  assert.equal(await collectUnreferenced(database, { keepHours: 24, backends: backendsOf([]) }, silent), 0);
});

test("the next run completes an interrupted removal, and an upload in between wins", async () => {
  const content = png(50);
  await storeBlob(gateway, content);
  await database.pool.query("UPDATE parley.blobs SET doomed_at = now() WHERE sha256 = $1", [hashOf(content)]);
  assert.equal(await isKept(hashOf(content)), false);
  await assert.rejects(gateway.request(store.inboxPut, message([attached(content)])), refused("INVALID_INPUT"));
  await storeBlob(gateway, content);
  assert.equal(await collectUnreferenced(database, { keepHours: 24, backends: backendsOf([]) }, silent), 0);
  assert.deepEqual(await fetchBlob(core, hashOf(content)), content);
  await database.pool.query("UPDATE parley.blobs SET doomed_at = now() WHERE sha256 = $1", [hashOf(content)]);
  assert.equal(await collectUnreferenced(database, { keepHours: 24, backends: backendsOf([]) }, silent), 1);
});

test("concurrent references and removals never leave a reference without content", async () => {
  for (let round = 0; round < 8; round++) {
    const content = png(60 + round);
    await storeBlob(gateway, content);
    await age(hashOf(content), 25);
    const [put] = await Promise.allSettled([
      gateway.request(store.inboxPut, message([attached(content)])),
      collectUnreferenced(database, { keepHours: 24, backends: backendsOf([]) }, silent),
    ]);
    assert.equal(await isKept(hashOf(content)), put.status === "fulfilled");
  }
});

test("content in a backend that is not configured does not block other removals", async () => {
  const content = png(70);
  // Older rows than the others, and more of them than one batch.
  await database.pool.query(
    `INSERT INTO parley.blobs (sha256, bytes, media_type, place, doomed_at)
     SELECT encode(sha256(n::text::bytea), 'hex'), 1, 'text/plain', 'folder', now() - interval '1 day' FROM generate_series(1, 150) AS n`,
  );
  await storeBlob(gateway, content);
  await database.pool.query("UPDATE parley.blobs SET doomed_at = now() WHERE sha256 = $1", [hashOf(content)]);
  try {
    for (let round = 0; round < 3; round++)
      await collectUnreferenced(database, { keepHours: 24, backends: backendsOf([]) }, silent);
    const { rows } = await database.pool.query("SELECT FROM parley.blobs WHERE sha256 = $1", [hashOf(content)]);
    assert.equal(rows.length, 0);
  } finally {
    await database.pool.query("DELETE FROM parley.blobs WHERE place = 'folder' AND bytes = 1");
  }
});

test("an unfinished upload is deleted with its chunks", async () => {
  const content = randomBytes(100);
  const uploadId = await uploadIdOf(content);
  await gateway.request(store.blobPut, { uploadId, n: 0, data: chunk(content, 0) });
  await database.pool.query("UPDATE parley.blob_uploads SET created_at = now() - interval '2 hours' WHERE id = $1", [
    uploadId,
  ]);
  await collectUnreferenced(database, { keepHours: 24, backends: backendsOf([]) }, silent);
  await assert.rejects(gateway.request(store.blobCommit, { uploadId }), refused("NOT_FOUND"));
  const { rows } = await database.pool.query("SELECT FROM parley.blob_upload_chunks WHERE upload_id = $1", [uploadId]);
  assert.equal(rows.length, 0);
});

test("large content is in the folder, small content in the database, and both are removed", async (t) => {
  const own = new Cleanup();
  t.after(() => own[Symbol.asyncDispose]());
  const folder = join(await temporaryFolder(own), "blobs");
  const apart = await startStoreStack(own, { storeEnv: { PARLEY__ATTACHMENTS__TYPES: '["image/*","text/plain"]' } });
  await apart.store.close();
  const base = readBaseConfig(
    {
      PARLEY_NATS_URL: apart.nats.urlFor("store"),
      PARLEY_REPLICA: "store-2",
      PARLEY_LOG_LEVEL: "silent",
      PARLEY__ATTACHMENTS__TYPES: '["image/*","text/plain"]',
    },
    "store",
  );
  const config = readConfig({ DATABASE_URL: apart.postgres.storeUrl, PARLEY_BLOB_DIR: folder }, base);
  const running = await start(config);
  own.add(() => running.close());
  const bus = await apart.bus("channel-gateway");
  const [small, large] = [png(100), png(store.blobChunkBytes + 9)];
  await storeBlob(bus, small);
  await storeBlob(bus, large);
  const files = (await readdir(folder, { recursive: true })).filter((name) => name.includes("/"));
  assert.deepEqual(
    files.map((name) => name.slice(0, name.indexOf("."))),
    [join(hashOf(large).slice(0, 2), hashOf(large))],
  );
  assert.deepEqual(await fetchBlob(bus, hashOf(small)), small);
  assert.deepEqual(await fetchBlob(bus, hashOf(large)), large);

  // A type that is not accepted leaves nothing in the folder.
  await assert.rejects(storeBlob(bus, randomBytes(store.blobChunkBytes * 2)), refused("INVALID_INPUT", /octet-stream/));
  const other = openDatabase(apart.postgres.storeUrl, 2, () => undefined);
  own.add(() => other.pool.end());
  await other.pool.query("UPDATE parley.blobs SET touched_at = now() - interval '25 hours'");
  assert.equal(
    await collectUnreferenced(other, { keepHours: 24, backends: backendsOf([filesystemBackend(folder)]) }, silent),
    2,
  );
  assert.deepEqual(
    (await readdir(folder, { recursive: true })).filter((name) => name.includes("/")),
    [],
  );
});

test("a draft of a killed writer is removed with its object", async (t) => {
  const own = new Cleanup();
  t.after(() => own[Symbol.asyncDispose]());
  const folder = await temporaryFolder(own);
  const place = filesystemBackend(folder);
  const object = `${hashOf(png(5))}.killed`;
  const draft = join(folder, object.slice(0, 2), `${object}.part`);
  await mkdir(dirname(draft), { recursive: true });
  await writeFile(draft, "half of");
  await place.remove(object);
  assert.deepEqual(await readdir(dirname(draft)), []);
});
