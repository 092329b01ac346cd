// Migrations: what a new file may contain, how each kind of file runs, and how the program waits for PostgreSQL.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startPostgres } from "@parley/local";
import { version } from "@parley/chassis";
import { healthReports } from "@parley/contracts";
import {
  Cleanup,
  openTestBus,
  startTestNats,
  startTestPostgres,
  temporaryFolder,
  testBaseConfig,
} from "@parley/testing";
import { Client } from "pg";
import { parseMigration } from "../src/db/migration-file.ts";
import { knownMigrations, migrate } from "../src/migrate.ts";
import { readConfig } from "../src/config.ts";
import { start } from "../src/service.ts";
import { migrationProblems } from "./support/migration-rules.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const folder = new URL("../migrations/", import.meta.url);
/** The newest migration that was written before the rules. */
const baseline = "0032_line_authors.sql";

describe("the rules for migrations", () => {
  for (const name of knownMigrations().filter((each) => each > baseline)) {
    test(`allow ${name}`, () => assert.deepEqual(migrationProblems(readFileSync(new URL(name, folder), "utf8")), []));
  }

  test("find each kind of change that breaks or blocks the version before", () => {
    const planted = [
      "ALTER TABLE parley.inbox DROP COLUMN body;",
      "DROP TABLE parley.inbox;",
      "ALTER TABLE parley.inbox RENAME COLUMN a TO b;",
      "ALTER TABLE parley.inbox ALTER COLUMN a TYPE bigint;",
      "ALTER TABLE parley.inbox ALTER COLUMN a SET NOT NULL;",
      "ALTER TABLE parley.inbox ADD COLUMN a text NOT NULL;",
      "ALTER TABLE parley.inbox ADD CONSTRAINT positive CHECK (a > 0);",
      "CREATE INDEX slow ON parley.inbox (a);",
      "CREATE UNIQUE INDEX slow ON parley.inbox (a);",
      "UPDATE parley.inbox SET a = 1;",
      "DELETE FROM parley.inbox WHERE a = 1;",
      "DO $$ BEGIN UPDATE parley.inbox SET a = 1; END $$;",
    ];
    for (const sql of planted) assert.equal(migrationProblems(sql).length, 1, sql);
  });

  test("allow a change that the version before does not notice", () => {
    const fine = [
      "CREATE TABLE parley.new (a text NOT NULL); CREATE INDEX fast ON parley.new (a); UPDATE parley.new SET a = '';",
      "ALTER TABLE parley.inbox ADD COLUMN a text;",
      "ALTER TABLE parley.inbox ADD COLUMN a boolean NOT NULL DEFAULT false;",
      "ALTER TABLE parley.inbox ADD CONSTRAINT positive CHECK (a > 0) NOT VALID;",
      "CREATE FUNCTION parley.f() RETURNS void LANGUAGE sql AS $$ UPDATE parley.inbox SET a = 1 $$;",
      "CREATE TABLE parley.new (a text REFERENCES parley.inbox ON DELETE CASCADE ON UPDATE CASCADE);",
      "-- migration: contract since 0.1.0\nALTER TABLE parley.inbox DROP COLUMN body;",
      "-- migration: concurrent\nCREATE INDEX CONCURRENTLY IF NOT EXISTS fast ON parley.inbox (a);",
      "-- migration: batches\nUPDATE parley.inbox SET a = 1 WHERE id IN (SELECT id FROM parley.inbox WHERE a = 0 LIMIT 1000);",
    ];
    for (const sql of fine) assert.deepEqual(migrationProblems(sql), [], sql);
  });
});

test("the store names a missing or too new migration, and starts when it is corrected", async () => {
  const [postgres, nats] = await Promise.all([startTestPostgres(cleanup), startTestNats(cleanup)]);
  const sql = new Client({ connectionString: postgres.ownerUrl });
  await sql.connect();
  cleanup.add(() => sql.end());
  const newest = knownMigrations().at(-1) ?? "";
  await sql.query("DELETE FROM parley.schema_migrations WHERE name = $1", [newest]);
  const starting = start(readConfig({ DATABASE_URL: postgres.storeUrl }, testBaseConfig(nats, "store")));
  const operator = await openTestBus(nats, "operator", cleanup);
  const report = async () => (await operator.gather(healthReports.store, {}, 250))[0];
  // The report is served before the schema is checked.
  let waiting = await report();
  while (!String(waiting?.details["waitingFor"]).includes(newest)) waiting = await report();
  assert.equal(waiting?.ready, false);
  assert.match(String(waiting?.details["waitingFor"]), /Kubernetes: Job migrate-\d+-\d+-\d+, Compose: service migrate/);

  const contract = "INSERT INTO parley.schema_migrations (name, contract_since) VALUES ($1, $2)";
  await sql.query(contract, ["9998_fits.sql", version]);
  await sql.query(contract, ["9999_newer.sql", "10.0.0"]);
  await sql.query("INSERT INTO parley.schema_migrations (name) VALUES ($1)", [newest]);
  while (String(waiting?.details["waitingFor"]).includes(newest)) waiting = await report();
  assert.equal(
    waiting?.details["waitingFor"],
    `waiting for the database: migration 9999_newer.sql of a newer version removed what version ${version} needs; ` +
      "install version 10.0.0 or newer, or restore a backup of this version",
  );

  await sql.query("DELETE FROM parley.schema_migrations WHERE name = '9999_newer.sql'");
  const store = await starting;
  cleanup.add(() => store.close());
  const started = await report();
  assert.deepEqual([started?.ready, started?.details["waitingFor"]], [true, undefined]);
});

describe("a migration file", () => {
  test("is refused when it could not run again after an interruption", () => {
    assert.throws(() => parseMigration("-- migration: concurrent\nCREATE INDEX CONCURRENTLY a ON parley.b (c);"));
    assert.throws(() => parseMigration("-- migration: batches\nUPDATE a SET b = 1;\nUPDATE c SET d = 1;"));
  });

  test("is recorded with the version that works after it when it removes something", async () => {
    const { ownerUrl } = await startTestPostgres(cleanup);
    const own = await temporaryFolder(cleanup);
    writeFileSync(join(own, "9998_adds.sql"), "SELECT 1;");
    writeFileSync(join(own, "9999_removes.sql"), "-- migration: contract since 0.2.0\nSELECT 1;");
    await migrate(ownerUrl, { folder: own });
    const sql = new Client({ connectionString: ownerUrl });
    await sql.connect();
    cleanup.add(() => sql.end());
    const { rows } = await sql.query(
      "SELECT contract_since FROM parley.schema_migrations WHERE name > '999' ORDER BY name",
    );
    assert.deepEqual(rows, [{ contract_since: null }, { contract_since: "0.2.0" }]);
  });

  test("runs in its mode, and continues after an interruption", async () => {
    const postgres = await startTestPostgres(cleanup);
    const files = join(await temporaryFolder(cleanup), "migrations");
    mkdirSync(files);
    const put = (name: string, text: string) => writeFileSync(join(files, name), text);
    put("9001_table.sql", "CREATE TABLE parley.probe (id int PRIMARY KEY, done boolean NOT NULL DEFAULT false);");
    await migrate(postgres.ownerUrl, { folder: files });
    const sql = new Client({ connectionString: postgres.ownerUrl });
    await sql.connect();
    cleanup.add(() => sql.end());
    await sql.query("INSERT INTO parley.probe SELECT generate_series(1, 2500); INSERT INTO parley.probe VALUES (0)");
    put(
      "9002_fill.sql",
      "-- migration: batches\nUPDATE parley.probe SET done = true\nWHERE id IN (SELECT id FROM parley.probe WHERE NOT done LIMIT 1000);",
    );
    // A failed concurrent index stays invalid: two rows have the same value.
    put(
      "9003_index.sql",
      "-- migration: concurrent\nCREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS probe_half ON parley.probe ((id / 2));",
    );
    await assert.rejects(migrate(postgres.ownerUrl, { folder: files }), /duplicate|not unique|could not create/);
    assert.equal((await sql.query("SELECT FROM parley.probe WHERE NOT done")).rowCount, 0);

    await sql.query("DELETE FROM parley.probe WHERE id % 2 = 1");
    const applied = await Promise.all([1, 2].map(() => migrate(postgres.ownerUrl, { folder: files })));
    assert.deepEqual(applied.flat(), ["9003_index.sql"], "one of two at the same time applies it");
    const { rows } = await sql.query(
      "SELECT indisvalid FROM pg_index WHERE indexrelid = 'parley.probe_half'::regclass",
    );
    assert.deepEqual(rows, [{ indisvalid: true }]);
  });

  test("is applied by the program once PostgreSQL is there, and each reason is one line", async () => {
    const place = createServer().listen(0, "127.0.0.1");
    await once(place, "listening");
    const { port } = place.address() as AddressInfo;
    place.close();
    const dataDir = join(await temporaryFolder(cleanup), "postgres");
    // The roles' passwords exist only after the first start.
    const first = await startPostgres({ dataDir, port });
    await first.stop();
    const program = fileURLToPath(new URL("../src/migrate.ts", import.meta.url));
    const env = { PATH: process.env["PATH"] ?? "", DATABASE_URL: first.ownerUrl };
    const child = spawn(process.execPath, ["--conditions=@parley/source", program, "--wait"], { env });
    const lines: string[] = [];
    child.stdout.on("data", (chunk: Buffer) => lines.push(String(chunk)));
    const waits = once(child.stderr, "data").then(([chunk]) => lines.push(String(chunk)));
    await waits;
    const ended = once(child, "close");
    const again = await startPostgres({ dataDir, port });
    cleanup.add(() => again.stop());
    assert.deepEqual(await ended, [0, null]);
    assert.equal(lines.length, 2, lines.join(""));
    assert.match(lines[0] ?? "", /waiting for PostgreSQL: .*ECONNREFUSED/);
    assert.match(lines[1] ?? "", /applied 0001_initial\.sql/);
  });
});
