// Backup of a store in use, and its restore into a new database: what is there again, and what is not repeated.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { store } from "@parley/contracts";
import {
  Cleanup,
  openTestBus,
  startTestNats,
  startTestPostgres,
  temporaryFolder,
  testBaseConfig,
} from "@parley/testing";
import { Client } from "pg";
import { backup } from "../src/backup.ts";
import { readConfig, type Folders } from "../src/config.ts";
import { restore } from "../src/restore.ts";
import { start } from "../src/service.ts";
import { failsWith, openStoreFixture, saying, stepOf, type StoreFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: StoreFixture;
let source: string;
let folders: Folders;

/** A turn whose answer waits to be sent. */
async function answered(text: string): Promise<string> {
  const conversation = randomUUID();
  const address = { channel: "telegram", account: "main", conversation };
  const { sessionId, turnId } = await fixture.begun({ ...saying(text), conversation, replyTo: address });
  const outgoing = [{ address, text: `answer to ${text}`, expiresInMs: 60_000 }];
  await fixture.core.request(store.stepCommit, stepOf(fixture.fenced(), turnId, 1, { outgoing }));
  return sessionId;
}

before(async () => {
  fixture = await openStoreFixture(cleanup);
  const folder = await temporaryFolder(cleanup);
  source = join(folder, "backup");
  folders = { workspace: join(folder, "workspace") };
  await mkdir(join(folder, "workspace", "notes"), { recursive: true });
  writeFileSync(join(folder, "workspace", "notes", "a.txt"), "text");
});
after(() => cleanup[Symbol.asyncDispose]());

test("restores a store that was in use, and repeats nothing", async () => {
  const sessionId = await answered("before");
  const leased = { name: "telegram:main", owner: "gateway-1/x", ttlMs: 60_000 };
  const lease = await fixture.gateway.request(store.leaseAcquire, leased);
  await fixture.gateway.request(store.scheduleCreate, {
    opId: randomUUID(),
    name: "hourly",
    schedule: "every 1h",
    timeZone: "UTC",
    prompt: "say: done",
    target: "own",
    deliverTo: null,
    overlap: "skip",
    missed: "run_once",
    afterRun: "disable",
    maxRuns: null,
    keepRuns: 50,
    enabled: true,
    createdBy: { sessionId: null, turnId: null, trust: "owner" },
  });
  await fixture.sql.query("UPDATE parley.schedules SET next_due = now() - interval '3 hours'");

  // Writes go on while the backup runs: each is in it completely or not at all.
  const stopping = new AbortController();
  const writing = (async () => {
    for (let number = 0; !stopping.signal.aborted; number++) await answered(`during ${number}`);
  })();
  const packing: string[] = [];
  const manifest = await backup(fixture.stack.postgres.ownerUrl, folders, source, (text) => packing.push(text()));
  assert.match(packing[0] ?? "", /^database: table 1 of \d+, \w+$/);
  assert.equal(packing.at(-1), "workspace: 0.0 MiB packed");
  stopping.abort();
  await writing;
  for (const file of readdirSync(source, { recursive: true, encoding: "utf8" })) {
    assert.equal(statSync(join(source, file)).mode & 0o077, 0, `${file} can be read by others`);
  }
  await answered("after");
  assert.deepEqual(manifest.folders, ["workspace"]);

  // Everything is lost: a new database, an empty folder.
  await rm(folders.workspace ?? "", { recursive: true });
  const postgres = await startTestPostgres(cleanup);
  const unpacking: string[] = [];
  await restore(postgres.ownerUrl, folders, source, {}, (text) => unpacking.push(text()));
  assert.match(unpacking[0] ?? "", /^database: table 1 of \d+, \w+$/);
  assert.match(unpacking.at(-1) ?? "", /^workspace: unpacking 0\.0 MiB$/);
  assert.equal(readFileSync(join(folders.workspace ?? "", "notes", "a.txt"), "utf8"), "text");
  const sql = new Client({ connectionString: postgres.ownerUrl });
  await sql.connect();
  cleanup.add(() => sql.end());
  const number = async (query: string) =>
    Number((await sql.query<{ n: string }>(`SELECT count(*) AS n ${query}`)).rows[0]?.n);

  for (const [table, rows] of Object.entries(manifest.tables))
    assert.equal(await number(`FROM parley.${table}`), table === "leader_keys" ? 0 : rows, table);
  assert.equal(
    await number("FROM parley.turns t LEFT JOIN parley.messages m ON m.turn_id = t.id WHERE m.seq IS NULL"),
    0,
  );
  assert.equal(await number("FROM parley.messages WHERE parts LIKE '%\"after\"%'"), 0);
  assert.equal(await number("FROM parley.outbox WHERE state <> 'unknown'"), 0);
  assert.ok((await number("FROM parley.outbox")) > 0);
  assert.equal(await number("FROM parley.schedules WHERE next_due <= now() OR NOT enabled"), 0);

  const gateway = await openRestored(postgres);
  const { messages } = await gateway.request(store.sessionMessages, { sessionId, afterSeq: 0, limit: 10 });
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant"],
  );
  // The owner of before and its fence are over.
  const again = await gateway.request(store.leaseAcquire, { ...leased, owner: "gateway-2/y" });
  assert.ok(again.granted && again.fence > lease.fence + 1_000);
});

/** A store on the restored database, with an agent-core of before that wakes up. Returns the gateway's connection. */
async function openRestored(postgres: { storeUrl: string }) {
  const nats = await startTestNats(cleanup);
  const running = await start(readConfig({ DATABASE_URL: postgres.storeUrl }, testBaseConfig(nats, "store")));
  cleanup.add(() => running.close());
  const core = await openTestBus(nats, "agent-core", cleanup);
  const gateway = await openTestBus(nats, "channel-gateway", cleanup);
  const { sessionId } = await gateway.request(store.inboxPut, {
    message: {
      channel: "telegram",
      account: "main",
      conversation: "new",
      externalId: randomUUID(),
      contact: { id: "7" },
      role: "owner",
      origin: "user",
      parts: [{ type: "text", text: "hello again" }],
      replyTo: { channel: "telegram", account: "main", conversation: "new" },
    },
    sessionKey: "test:new",
  });
  const claim = { opId: randomUUID(), sessionId, knownSeq: 0, maxClaims: 5 };
  await assert.rejects(core.request(store.turnClaim, { ...claim, epoch: fixture.epoch }), failsWith("STALE_EPOCH"));
  return gateway;
}

test("refuses an incomplete backup, a newer one, and a target that is in use", async () => {
  const used = fixture.stack.postgres.ownerUrl;
  await assert.rejects(restore(used, {}, source), /contains sessions: --replace/);
  await assert.rejects(restore(used, {}, await temporaryFolder(cleanup)), /not a complete backup/);
  const newer = await temporaryFolder(cleanup);
  const manifest = JSON.parse(readFileSync(join(source, "manifest.json"), "utf8")) as object;
  writeFileSync(join(newer, "manifest.json"), JSON.stringify({ ...manifest, migration: "9999_later.sql" }));
  await assert.rejects(restore(used, {}, newer), /newer version/);
  await assert.rejects(backup(used, {}, source), /not empty/);
  assert.ok((await fixture.sql.query("SELECT FROM parley.sessions")).rowCount !== 0, "nothing was deleted");
});
