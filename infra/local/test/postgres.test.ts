import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { nameOf, processesIn, waitGone } from "../src/processes.ts";
import { databaseStatements, startPostgres } from "../src/servers/postgres.ts";
import { folder } from "./support/folder.ts";
import { sql } from "./support/sql.ts";

test("restarts after kill -9 on the same port with the committed data", async () => {
  using home = folder();
  await using first = await startPostgres({ dataDir: home.path });
  await sql(first.ownerUrl, "CREATE TABLE kept (n int)", "INSERT INTO kept VALUES (7)");
  await first.kill("SIGKILL");
  assert.deepEqual(await first.exited, { code: null, signal: "SIGKILL" });

  await using second = await startPostgres({ dataDir: home.path, port: first.port });
  assert.equal(second.ownerUrl, first.ownerUrl);
  assert.deepEqual(await sql(second.ownerUrl, "SELECT n FROM kept"), [{ n: 7 }]);
});

test("runs in a private folder and stores its passwords there with mode 0600", async () => {
  using home = folder();
  chmodSync(home.path, 0o700);
  await using server = await startPostgres({ dataDir: join(home.path, "deep", "postgres") });
  const kept = join(server.dataDir, "data", "parley-passwords.json");
  assert.equal(statSync(kept).mode & 0o077, 0);
  await assert.rejects(
    sql(server.ownerUrl.replace(/:[^:@]+@/, ":wrong@"), "SELECT 1"),
    /password authentication failed/,
  );
});

test("denies the store's role all DDL, including temporary tables, and limits its transactions", async () => {
  using home = folder();
  await using server = await startPostgres({ dataDir: home.path });
  await assert.rejects(sql(server.storeUrl, "CREATE TABLE mine (n int)"), /permission denied for schema public/);
  await assert.rejects(sql(server.storeUrl, "CREATE TEMPORARY TABLE mine (n int)"), /permission denied/);
  await assert.rejects(sql(server.storeUrl, "CREATE DATABASE mine"), /permission denied/);
  await sql(server.ownerUrl, "CREATE TABLE kept (n int)", "GRANT SELECT, INSERT ON kept TO parley_store");
  await sql(server.storeUrl, "INSERT INTO kept VALUES (1)");
  const settings = [
    "statement_timeout",
    "idle_in_transaction_session_timeout",
    "transaction_timeout",
    "fsync",
    "synchronous_commit",
  ];
  const rows = await sql(
    server.storeUrl,
    `SELECT ${settings.map((name) => `current_setting('${name}') AS ${name}`).join(", ")}`,
  );
  assert.deepEqual(rows, [
    {
      statement_timeout: "5s",
      idle_in_transaction_session_timeout: "2s",
      transaction_timeout: "10s",
      fsync: "on",
      synchronous_commit: "on",
    },
  ]);
});

test("creates a further database with the same owner and rights", async () => {
  using home = folder();
  await using server = await startPostgres({ dataDir: home.path });
  for (const statement of databaseStatements("second")) await sql(server.adminUrl, statement);
  const { ownerUrl, storeUrl } = server.urlsFor("second");
  await sql(ownerUrl, "CREATE TABLE own (n int)");
  await assert.rejects(sql(storeUrl, "CREATE TABLE mine (n int)"), /permission denied/);
  assert.throws(() => databaseStatements('x"; DROP'), { code: "bad_option" });
});

test("names the port when another process listens on it", async () => {
  using home = folder();
  await using first = await startPostgres({ dataDir: join(home.path, "a") });
  await assert.rejects(startPostgres({ dataDir: join(home.path, "b"), port: first.port }), {
    code: "port_taken",
    message: new RegExp(`${first.port}`),
  });
});

test(
  "ends postgres with its killed owner, and reuses the folder at the next start",
  { skip: process.platform !== "linux" && "needs /proc" },
  async () => {
    using home = folder();
    const script = `
    const { startPostgres } = await import(${JSON.stringify(new URL("../src/servers/postgres.ts", import.meta.url).href)});
    const server = await startPostgres({ dataDir: ${JSON.stringify(home.path)} });
    console.log(server.pid);
    setInterval(() => {}, 1000);`;
    const owner = spawn(process.execPath, ["--conditions=@parley/source", "--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(createInterface({ input: owner.stdout }), "line")) as [string];
    const orphan = nameOf(Number(line));
    assert.ok(orphan);
    owner.kill("SIGKILL");
    await once(owner, "exit");

    await using next = await startPostgres({ dataDir: home.path });
    assert.ok(await waitGone(orphan, 5_000));
    assert.deepEqual(await sql(next.ownerUrl, "SELECT 1 AS one"), [{ one: 1 }]);
  },
);

test(
  "starts again after all processes of postgres were killed at once",
  { skip: process.platform !== "linux" && "needs /proc" },
  async () => {
    using home = folder();
    await using first = await startPostgres({ dataDir: home.path });
    await sql(first.ownerUrl, "CREATE TABLE kept (n int)");
    for (const { pid } of processesIn(join(home.path, "data"))) process.kill(pid, "SIGKILL");
    await first.exited;
    await using second = await startPostgres({ dataDir: home.path, port: first.port });
    assert.deepEqual(await sql(second.ownerUrl, "SELECT count(*)::int AS n FROM kept"), [{ n: 0 }]);
  },
);
