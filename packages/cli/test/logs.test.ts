import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { plain } from "../src/io/io.ts";
import { followLogs, readLogs } from "../src/logs/files.ts";
import { recordJson, recordText } from "../src/logs/format.ts";
import { readLine } from "../src/logs/records.ts";
import { mergeLogs, readSince } from "../src/logs/records.ts";
import { runParley } from "./support/parley.ts";

const line = (time: string, msg: string, level = "info"): string =>
  JSON.stringify({ level, time: `2026-11-21T10:00:${time}Z`, service: "store", replica: "store-1", msg });

test("merges logs by time and keeps the order of equal times", () => {
  const merged = mergeLogs(
    [
      { source: "store-1", lines: [line("01.000", "a"), line("03.000", "c"), line("03.000", "d")] },
      { source: "store-2", lines: [line("02.000", "b"), line("04.000", "e")] },
    ],
    {},
  );
  assert.deepEqual(
    merged.map(({ message }) => message),
    ["a", "b", "c", "d", "e"],
  );
});

test("keeps a line without a time after the previous line, with its level", () => {
  const merged = mergeLogs(
    [
      { source: "store-1", lines: [line("01.000", "failed", "error"), "    at somewhere"] },
      { source: "store-2", lines: [line("02.000", "later")] },
    ],
    { level: "warn" },
  );
  assert.deepEqual(
    merged.map(({ message }) => message),
    ["failed", "    at somewhere"],
  );
});

test("filters by service, replica, level and time", () => {
  const logs = [{ source: "store-1", lines: [line("01.000", "a"), line("02.000", "b", "warn")] }];
  const count = (filter: Parameters<typeof mergeLogs>[1]): number => mergeLogs(logs, filter).length;
  assert.equal(count({ service: "store" }), 2);
  assert.equal(count({ service: "store-1" }), 2);
  assert.equal(count({ service: "agent-core" }), 0);
  assert.equal(count({ level: "warn" }), 1);
  assert.equal(count({ since: Date.parse("2026-11-21T10:00:01.500Z") }), 1);
});

test("parses the time and level of PostgreSQL, Redis and NATS lines", () => {
  const at = Date.parse("2026-11-21T21:44:01.123Z");
  const lines = {
    nats: "[12] 2026/11/21 21:44:01.123456 [ERR] no",
    redis: "12:M 21 Nov 2026 21:44:01.123 # no",
    postgres: "2026-11-21 21:44:01.123 UTC [12] ERROR:  no",
  };
  assert.deepEqual(
    Object.entries(lines).map(([source, text]) => {
      const { time, level, message } = readLine(text, source);
      return { time, level, message };
    }),
    [
      { time: at, level: "error", message: "no" },
      { time: at, level: "warn", message: "no" },
      { time: at, level: "error", message: "no" },
    ],
  );
});

test("prints a record as one JSON line, or as readable text with its error below", () => {
  const record = readLine(
    JSON.stringify({
      level: "error",
      time: "2026-11-21T10:00:00.000Z",
      msg: "m",
      n: 1,
      err: { message: "bad", stack: "Error: bad\n    at x" },
    }),
    "store-1",
  );
  assert.deepEqual(Object.keys(JSON.parse(recordJson(record)) as object).slice(-5), [
    "time",
    "level",
    "service",
    "replica",
    "msg",
  ]);
  assert.match(recordText(record, plain), /store-1 +error m bad n=1\n {4}at x$/);
});

test("parses a time as a duration ago or a date", () => {
  assert.equal(readSince("10m", 1_000_000), 400_000);
  assert.equal(readSince("2026-11-21T00:00:00Z", 0), Date.parse("2026-11-21T00:00:00Z"));
  assert.equal(readSince("yesterday", 0), null);
});

test("reads a rotated log before its successor, also while following", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-logs-"));
  const file = join(folder, "store-1.log");
  const heard: string[] = [];
  const stopping = new AbortController();
  try {
    writeFileSync(file, `${line("01.000", "a")}\n`);
    const three = Promise.withResolvers<void>();
    const following = followLogs(
      folder,
      ({ message }) => {
        heard.push(message);
        if (heard.length === 3) three.resolve();
      },
      stopping.signal,
    );
    appendFileSync(file, `${line("02.000", "b")}\n`);
    renameSync(file, `${file}.1`);
    writeFileSync(file, `${line("03.000", "c")}\n${line("04.000", "d")}\n`);
    await three.promise;
    stopping.abort();
    await following;
    assert.deepEqual(heard, ["b", "c", "d"]);
    assert.deepEqual(
      mergeLogs(readLogs(folder), {}).map(({ message }) => message),
      ["a", "b", "c", "d"],
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("refuses a service that has no log, and names those that have", async () => {
  const home = mkdtempSync(join(tmpdir(), "parley-logs-"));
  mkdirSync(join(home, "logs"));
  writeFileSync(join(home, "logs", "store-1.log"), `${line("01.000", "ready")}\n`);
  writeFileSync(join(home, "logs", "redis.log"), "");
  for (const follow of [[], ["--follow"]]) {
    const refused = await runParley(home, ["logs", "--service", "nosuch", ...follow]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /No log is of a service, replica or server "nosuch"\./);
    assert.match(refused.stderr, /There are: redis, store, store-1$/m);
  }
  const silent = await runParley(home, ["logs", "--service", "redis"]);
  assert.deepEqual([silent.code, silent.stdout], [0, ""]);
  rmSync(home, { recursive: true, force: true });
});
