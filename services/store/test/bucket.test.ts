// Large content in a bucket of a real S3 server: stored once and atomically, and never lost with the server.
import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { fetchBlob, storeBlob, type Bus } from "@parley/bus";
import { createLogger, readBaseConfig } from "@parley/chassis";
import { store, WireError } from "@parley/contracts";
import { Cleanup, startStoreStack, temporaryFolder, type StoreStack } from "@parley/testing";
import fc from "fast-check";
import { s3Backend } from "../src/blobs/s3.ts";
import { filesystemBackend } from "../src/blobs/filesystem.ts";
import { collectUnreferenced } from "../src/retention/blobs.ts";
import { backendsOf } from "../src/blobs/open.ts";
import { readConfig } from "../src/config.ts";
import { openDatabase, type Database } from "../src/db/database.ts";
import { start } from "../src/service.ts";
import { FairSemaphore } from "@parley/kit";
import { commit } from "../src/handlers/blobs/blobs.ts";
import { startS3, type S3Fixture } from "./support/s3.ts";

const cleanup = new Cleanup();
let s3: S3Fixture;
let stack: StoreStack;
let bus: Bus;
let database: Database;
let client: S3Client;
let folder: string;

before(async () => {
  s3 = await startS3(cleanup);
  stack = await startStoreStack(cleanup);
  await stack.store.close();
  folder = await temporaryFolder(cleanup);
  const running = await start(configOf({ PARLEY_BLOB_DIR: folder }));
  cleanup.add(() => running.close());
  bus = await stack.bus("channel-gateway");
  database = openDatabase(stack.postgres.storeUrl, 4, () => undefined);
  cleanup.add(() => database.pool.end());
  client = new S3Client({
    endpoint: s3.bucket.endpoint ?? "",
    region: s3.bucket.region,
    forcePathStyle: true,
    credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
  });
  cleanup.add(async () => client.destroy());
});
afterEach(() => {
  s3.mode = "pass";
  s3.removals = "pass";
  s3.afterWrite = async () => undefined;
});
after(() => cleanup[Symbol.asyncDispose]());

const failures: string[] = [];
const heard = (error: Error) => failures.push(error.message);
const quiet = createLogger({ service: "test", replica: "test", level: "silent" });
const hashOf = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");
const large = () => randomBytes(2 * store.blobChunkBytes + 77);

function configOf(more: Record<string, string>) {
  const base = readBaseConfig(
    { PARLEY_NATS_URL: stack.nats.urlFor("store"), PARLEY_REPLICA: "store-2", PARLEY_LOG_LEVEL: "silent" },
    "store",
  );
  return readConfig(
    {
      DATABASE_URL: stack.postgres.storeUrl,
      PARLEY_BLOB_BUCKET: s3.bucket.bucket,
      PARLEY_BLOB_ENDPOINT: s3.bucket.endpoint ?? "",
      PARLEY_BLOB_PREFIX: "blobs",
      AWS_ACCESS_KEY_ID: "S3RVER",
      AWS_SECRET_ACCESS_KEY: "S3RVER",
      ...more,
    },
    base,
  );
}

async function keys(): Promise<string[]> {
  const listed = await client.send(new ListObjectsV2Command({ Bucket: s3.bucket.bucket }));
  return (listed.Contents ?? []).map(({ Key }) => Key ?? "");
}
/** The names of the objects with this content. */
const keysOf = async (content: Uint8Array) =>
  (await keys()).filter((key) => key.startsWith(`blobs/${hashOf(content)}.`));
const replace = async (content: Uint8Array, by: Uint8Array) => {
  for (const Key of await keysOf(content))
    await client.send(new PutObjectCommand({ Bucket: s3.bucket.bucket, Key, Body: by }));
};
/** Creates content as older versions stored it: the object is named after the hash only. */
async function keptBefore(content: Uint8Array): Promise<void> {
  await client.send(new PutObjectCommand({ Bucket: s3.bucket.bucket, Key: `blobs/${hashOf(content)}`, Body: content }));
  await database.pool.query(
    "INSERT INTO parley.blobs (sha256, bytes, media_type, place) VALUES ($1, $2, 'text/plain', 'bucket')",
    [hashOf(content), content.length],
  );
}
const dueNow = (content: Uint8Array) =>
  database.pool.query("UPDATE parley.blob_strays SET remove_at = now() WHERE object LIKE $1 || '%'", [hashOf(content)]);
const age = () => database.pool.query("UPDATE parley.blobs SET touched_at = now() - interval '25 hours'");
const forgetAll = () =>
  collectUnreferenced(
    database,
    { keepHours: 24, backends: backendsOf([s3Backend(s3.bucket, heard), filesystemBackend(folder)]) },
    quiet,
  );

/** Completes this many pending removals, the oldest first. */
async function letThrough(count: number): Promise<void> {
  for (const carryOut of s3.onTheirWay.splice(0, count)) await carryOut();
}

/** An upload with all chunks that is not committed. */
async function uploaded(content: Uint8Array): Promise<string> {
  const begun = await bus.request(store.blobBegin, {
    opId: randomUUID(),
    sha256: hashOf(content),
    bytes: content.length,
  });
  assert.ok(begun.status === "wanted");
  return sendChunks(begun.uploadId, content);
}
async function sendChunks(uploadId: string, content: Uint8Array): Promise<string> {
  for (let n = 0; n * store.blobChunkBytes < content.length; n++) {
    const chunk = content.subarray(n * store.blobChunkBytes, (n + 1) * store.blobChunkBytes);
    await bus.request(store.blobPut, { uploadId, n, data: Buffer.from(chunk).toString("base64") });
  }
  return uploadId;
}
/** A single attempt: the bus would retry until its deadline. */
const commitOnce = (uploadId: string) =>
  commit(
    database,
    { maxBytes: 1e9, types: ["*"], backends: backendsOf([s3Backend(s3.bucket, heard)]) },
    new FairSemaphore(1),
    { uploadId },
  );

test("large content is in the bucket, small content in the database, and both are deleted", async () => {
  const [small, content] = [randomBytes(1_000), randomBytes(3 * 1024 * 1024)];
  await storeBlob(bus, small);
  await storeBlob(bus, content);
  assert.equal((await keysOf(content)).length, 1);
  assert.equal((await keys()).length, 1);
  assert.deepEqual(await fetchBlob(bus, hashOf(small)), small);
  assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
  await age();
  assert.equal(await forgetAll(), 2);
  assert.deepEqual(await keys(), []);
});

test("content stored in the folder before a bucket existed is read and deleted there", async () => {
  const content = large();
  await filesystemBackend(folder).write({
    object: hashOf(content),
    sha256: hashOf(content),
    bytes: content.length,
    chunks: async function* () {
      yield content;
    },
  });
  await database.pool.query(
    "INSERT INTO parley.blobs (sha256, bytes, media_type, place) VALUES ($1, $2, 'text/plain', 'folder')",
    [hashOf(content), content.length],
  );
  assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
  await age();
  assert.equal(await forgetAll(), 1);
  assert.equal(await filesystemBackend(folder).read(hashOf(content), 0, 10), null);
});

for (const mode of ["cut", "down", "denied"] as const) {
  test(`a bucket failure (${mode}) loses nothing: a retry of the same upload succeeds`, async () => {
    const content = large();
    const uploadId = await uploaded(content);
    s3.mode = mode;
    await assert.rejects(
      commitOnce(uploadId),
      (error) => WireError.is(error, "UNAVAILABLE") && /attachment bucket parley-test failed/.test(error.message),
    );
    assert.match(failures.at(-1) ?? "", /attachment bucket parley-test failed/, "the operator gets the failure");
    s3.mode = "pass";
    assert.deepEqual(await keys(), []);
    assert.equal((await bus.request(store.blobCommit, { uploadId })).blob.sha256, hashOf(content));
    assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
    await age();
    assert.equal(await forgetAll(), 1);
  });
}

test("content in an unavailable bucket is unavailable, not missing", async () => {
  const content = large();
  await storeBlob(bus, content);
  s3.mode = "down";
  await assert.rejects(
    bus.request(store.blobGet, { sha256: hashOf(content), n: 0 }),
    (error) => WireError.is(error, "UNAVAILABLE") && /ServiceUnavailable/.test(error.message),
  );
  await age();
  assert.equal(await forgetAll(), 0);
  s3.mode = "pass";
  assert.equal(await forgetAll(), 1);
  assert.deepEqual(await keys(), []);
});

test("an object whose commit failed is removed by the next run", async () => {
  const content = large();
  const uploadId = await uploaded(content);
  // The upload's row is locked during the write, so that the following commit fails.
  s3.afterWrite = async () => {
    await database.pool.query("DELETE FROM parley.blob_uploads WHERE id = $1", [uploadId]);
  };
  await assert.rejects(commitOnce(uploadId));
  s3.afterWrite = async () => undefined;
  assert.equal((await keysOf(content)).length, 1);
  assert.deepEqual((await bus.request(store.blobHead, { sha256: [hashOf(content)] })).blobs, []);
  assert.equal(await forgetAll(), 0, "a recent object is not removed");
  await dueNow(content);
  assert.equal(await forgetAll(), 1);
  assert.deepEqual(await keys(), []);
});

test("a bucket write that is slower than the transaction limit still stores the content", async () => {
  const content = large();
  const uploadId = await uploaded(content);
  // The store's role may be idle in a transaction for 2 s.
  s3.afterWrite = () => delay(2_500);
  assert.equal((await commitOnce(uploadId)).blob.sha256, hashOf(content));
  assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
});

for (const removals of ["pass", "cut"] as const) {
  test(`content removed (${removals}) while it is written is not reported as stored, and a retry stores it`, async () => {
    const content = large();
    const uploadId = await uploaded(content);
    s3.afterWrite = async () => {
      s3.afterWrite = async () => undefined;
      await dueNow(content);
      s3.removals = removals;
      await forgetAll();
    };
    await assert.rejects(commitOnce(uploadId), (error) => WireError.is(error, "UNAVAILABLE"));
    assert.equal((await commitOnce(uploadId)).blob.sha256, hashOf(content));
    await letThrough(s3.onTheirWay.length);
    assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
  });
}

test("two concurrent uploads of the same content both succeed", async () => {
  const content = large();
  const kept = await Promise.all(
    [await uploaded(content), await uploaded(content)].map((uploadId) => commitOnce(uploadId)),
  );
  assert.deepEqual(new Set(kept.map(({ blob }) => blob.sha256)), new Set([hashOf(content)]));
  await forgetAll();
  assert.equal((await keysOf(content)).length, 1, "the second object is removed");
  assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
});

test("a late removal after a new upload of the same content removes nothing needed", async () => {
  for (const before of [keptBefore, (content: Uint8Array) => storeBlob(bus, content)]) {
    await age();
    await forgetAll();
    const content = large();
    await before(content);
    await age();
    s3.removals = "held";
    assert.equal(await forgetAll(), 0, "the removal is not confirmed");
    await storeBlob(bus, content);
    s3.removals = "pass";
    await letThrough(s3.onTheirWay.length);
    assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
    assert.equal(await forgetAll(), 1, "the removal of the old object is retried");
    assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
    assert.equal((await keys()).filter((key) => key.includes(hashOf(content))).length, 1);
  }
});

/** Events of two contents with late removals, in any order. */
const happening = fc.oneof(
  fc.record({ what: fc.constant("keep" as const), which: fc.nat(1), stores: fc.integer({ min: 1, max: 2 }) }),
  fc.record({ what: fc.constant("die" as const), which: fc.nat(1) }),
  fc.record({ what: fc.constant("forget" as const), removals: fc.constantFrom("pass" as const, "cut" as const) }),
  fc.record({ what: fc.constant("late" as const), count: fc.integer({ min: 1, max: 3 }) }),
);

test("property: stored content always exists, and in the end nothing else does", async () => {
  const contents = [large(), large()] as const;
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { minLength: 3, maxLength: 10 }), async (happenings) => {
      for (const happened of happenings) {
        if (happened.what === "keep") {
          const content = contents[happened.which] ?? contents[0];
          await Promise.all(Array.from({ length: happened.stores }, () => keepOnce(content)));
          assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
        }
        if (happened.what === "die") await dieWriting(contents[happened.which] ?? contents[0]);
        if (happened.what === "late") await letThrough(happened.count);
        if (happened.what === "forget") {
          s3.removals = happened.removals;
          await age();
          await Promise.all([forgetAll(), forgetAll()]);
          s3.removals = "pass";
        }
        await keptAreThere(contents);
      }
      await letThrough(s3.onTheirWay.length);
      await database.pool.query("UPDATE parley.blob_strays SET remove_at = now()");
      while ((await forgetAll()) > 0);
      const { rows } = await database.pool.query<{ object: string }>(
        "SELECT object FROM parley.blobs WHERE place = 'bucket' ORDER BY object",
      );
      assert.deepEqual(
        (await keys()).sort(),
        rows.map(({ object }) => `blobs/${object}`),
      );
      await keptAreThere(contents);
    }),
    { numRuns: 12 },
  );
});

/** Stores content through one of the stores, if it is not stored. */
async function keepOnce(content: Uint8Array): Promise<void> {
  const begun = await bus.request(store.blobBegin, {
    opId: randomUUID(),
    sha256: hashOf(content),
    bytes: content.length,
  });
  if (begun.status === "wanted") await commitOnce(await sendChunks(begun.uploadId, content));
}

/** The object is written, and its store crashes before the commit. */
async function dieWriting(content: Uint8Array): Promise<void> {
  const begun = await bus.request(store.blobBegin, {
    opId: randomUUID(),
    sha256: hashOf(content),
    bytes: content.length,
  });
  if (begun.status === "kept") return;
  await sendChunks(begun.uploadId, content);
  s3.afterWrite = async () => {
    await database.pool.query("DELETE FROM parley.blob_uploads WHERE id = $1", [begun.uploadId]);
  };
  await assert.rejects(commitOnce(begun.uploadId));
  s3.afterWrite = async () => undefined;
  await dueNow(content);
}

async function keptAreThere(contents: readonly Uint8Array[]): Promise<void> {
  const { blobs } = await bus.request(store.blobHead, { sha256: contents.map(hashOf) });
  for (const { sha256 } of blobs) assert.equal(hashOf(await fetchBlob(bus, sha256)), sha256);
}

test("content of older versions is read, and deleted under its old name", async () => {
  const content = large();
  await keptBefore(content);
  assert.deepEqual(await fetchBlob(bus, hashOf(content)), content);
  await age();
  await forgetAll();
  assert.ok(!(await keys()).includes(`blobs/${hashOf(content)}`));
});

test("changed, truncated or missing content in the bucket is never returned as the original", async () => {
  const [changed, cut, gone] = [large(), large(), large()];
  for (const content of [changed, cut, gone]) await storeBlob(bus, content);
  const other = Buffer.from(changed);
  other.writeUInt8((other.readUInt8(300_000) + 1) % 256, 300_000);
  await replace(changed, other);
  await replace(cut, cut.subarray(0, store.blobChunkBytes + 5));
  for (const key of await keysOf(gone)) await s3Backend(s3.bucket, heard).remove(key.replace("blobs/", ""));
  for (const content of [changed, cut]) {
    await assert.rejects(
      fetchBlob(bus, hashOf(content)),
      (error) => WireError.is(error, "INTERNAL") && /is damaged/.test(error.message),
    );
  }
  await assert.rejects(fetchBlob(bus, hashOf(gone)), (error) => WireError.is(error, "NOT_FOUND"));
});

test("content in a backend that is not configured fails with the backend's name", async () => {
  const content = large();
  await storeBlob(bus, content);
  const elsewhere = backendsOf([]);
  assert.throws(
    () => elsewhere.named("bucket"),
    (error) => WireError.is(error, "UNAVAILABLE") && /PARLEY_BLOB_BUCKET/.test(error.message),
  );
  await age();
  assert.equal(await collectUnreferenced(database, { keepHours: 24, backends: elsewhere }, quiet), 0);
  assert.equal((await keysOf(content)).length, 1);
  await forgetAll();
  assert.equal((await keysOf(content)).length, 0);
});

test("variables configure a bucket, and defaults follow from the endpoint", () => {
  assert.deepEqual(configOf({}).blobBucket, s3.bucket);
  const amazon = configOf({
    PARLEY_BLOB_ENDPOINT: "",
    PARLEY_BLOB_PREFIX: "",
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "",
    AWS_SECRET_ACCESS_KEY: "",
  });
  assert.deepEqual(amazon.blobBucket, {
    bucket: s3.bucket.bucket,
    endpoint: null,
    region: "eu-central-1",
    pathStyle: false,
    prefix: "",
    credentials: null,
  });
  assert.equal(configOf({ PARLEY_BLOB_BUCKET: "", PARLEY_BLOB_DIR: "" }).blobBucket, null);
  assert.throws(() => configOf({ PARLEY_BLOB_ENDPOINT: "minio:9000" }), /PARLEY_BLOB_ENDPOINT/);
});
