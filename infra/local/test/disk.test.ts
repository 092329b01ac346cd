// Failed writes: the cluster continues and reports once where the file is optional; a start fails with a short message.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { readRunningState } from "../src/home.ts";
import { describeMissingBubblewrap, sharedCacheDir } from "../src/servers/locate.ts";
import { LogFile } from "../src/supervisor/log-file.ts";
import { WriteFailureReporter } from "../src/supervisor/log-file.ts";
import { startLocalCluster } from "../src/local-cluster.ts";
import { fakePrograms } from "./fake-programs/programs.ts";
import { folder } from "./support/folder.ts";

const given = {
  postgres: {
    ownerUrl: "postgres://parley_owner:x@127.0.0.1:9/parley",
    storeUrl: "postgres://parley_store:x@127.0.0.1:9/parley",
  },
  redis: { url: "redis://127.0.0.1:9" },
  nats: { urlFor: (user: string) => `nats://${user}:x@127.0.0.1:9` },
};
const base = { serversDir: sharedCacheDir, programs: fakePrograms, servers: given };

test("keeps the cluster running and reports once when state.json meets a full disk", async () => {
  using home = folder();
  const warnings: string[] = [];
  const again = Promise.withResolvers<void>();
  await using cluster = await startLocalCluster({
    ...base,
    home: home.path,
    warn: (line) => {
      warnings.push(line);
      if (line.includes("written again")) again.resolve();
    },
  });
  // Each write to this device fails with ENOSPC, as on a full disk.
  symlinkSync("/dev/full", join(home.path, "state.json.new"));
  for (let deaths = 1; deaths <= 2; deaths += 1) {
    await cluster.kill("store", 1, "SIGKILL");
    await cluster.whenReady("store", 1);
  }
  assert.equal(warnings.length, 1, warnings.join("\n"));
  assert.match(warnings[0] ?? "", /^disk full: .*state\.json cannot be written\. Free some space/);
  rmSync(join(home.path, "state.json.new"));
  await again.promise;
  assert.equal(readRunningState(home.path)?.replicas.find(({ service }) => service === "store")?.restarts, 2);
});

test("continues and reports once when a log can be neither written nor rotated", () => {
  using home = folder();
  const reports: string[] = [];
  const writeFailures = new WriteFailureReporter(home.path, (line) => reports.push(line));
  const full = join(home.path, "full.log");
  symlinkSync("/dev/full", full);
  using first = new LogFile(full, { writeFailures });
  first.write(Buffer.from("one\n"));
  first.write(Buffer.from("two\n"));
  assert.equal(reports.length, 1);
  assert.match(reports[0] ?? "", /^disk full: /);
  assert.deepEqual(first.lastLines(), ["one", "two"]);

  const path = join(home.path, "a.log");
  mkdirSync(join(`${path}.1`, "in-the-way"), { recursive: true });
  using second = new LogFile(path, {
    limitBytes: 8,
    writeFailures: new WriteFailureReporter(home.path, (line) => reports.push(line)),
  });
  for (const line of ["first\n", "second\n", "third\n"]) second.write(Buffer.from(line));
  assert.equal(reports.length, 2);
  rmSync(`${path}.1`, { recursive: true });
  second.write(Buffer.from("fourth\n"));
  assert.equal(readFileSync(path, "utf8"), "fourth\n");
  assert.equal(reports.length, 3);
});

test("names the full disk, not a missing package, when bubblewrap cannot be unpacked", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, mkdtemp"), { code: "ENOSPC" });
  for (const error of [full, new Error("dpkg-deb: cannot write: No space left on device")]) {
    assert.match(describeMissingBubblewrap(error, "/servers"), /^The disk of \/servers is full/);
  }
  assert.match(describeMissingBubblewrap(new Error("no network"), "/servers"), /apt install bubblewrap/);
  assert.match(
    describeMissingBubblewrap(undefined, "/servers", "sudo dnf install"),
    /with `sudo dnf install bubblewrap`\.$/,
  );
  assert.match(describeMissingBubblewrap(undefined, "/servers", null), /with your package manager\.$/);
});

test("rejects with the reason of the signal when it aborts during the migration", async () => {
  using home = folder();
  const stop = new AbortController();
  const reason = new Error("Ctrl-C");
  const start = startLocalCluster({
    ...base,
    home: home.path,
    signal: stop.signal,
    // The migration is started right after this line.
    print: (line) => line === "database: migrating" && queueMicrotask(() => setImmediate(() => stop.abort(reason))),
  });
  await assert.rejects(start, (error) => error === reason);
});

async function npmStart(home: string, uid?: number): Promise<{ code: unknown; stderr: string }> {
  const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@parley/source", main, "--home", home, "--no-chat"], {
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
    stdio: ["ignore", "ignore", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (part: string) => (stderr += part));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stderr };
}

test("ends with two lines and no stack trace when the data folder cannot be used", async () => {
  using place = folder();
  chmodSync(place.path, 0o755);
  const file = join(place.path, "file");
  writeFileSync(file, "");
  const closed = join(place.path, "closed");
  mkdirSync(closed, { mode: 0o555 });
  // Root may write everywhere, so another user has to try; the folder then belongs to a different user (EPERM).
  const uid = process.getuid?.() === 0 ? 65_534 : undefined;
  for (const [home, as, message] of [
    [file, undefined, /\/file is a file, but a folder is needed/],
    [join(file, "home"), undefined, /is a file, but a folder is needed/],
    [join(closed, "home"), uid, /closed\/home cannot be written by this user \(EACCES\)/],
    ...(uid === undefined ? [] : [[closed, uid, /closed cannot be written by this user \(EPERM\)/] as const]),
  ] as const) {
    const { code, stderr } = await npmStart(home, as);
    assert.equal(code, 1, stderr);
    assert.match(stderr, message);
    assert.match(stderr, /PARLEY_HOME=<folder>/);
    assert.ok(!/^ +at /m.test(stderr), stderr);
    assert.equal(stderr.trim().split("\n").length, 2, stderr);
  }
});
