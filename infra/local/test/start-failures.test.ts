import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { documentsHash, ensureConsole, markerName } from "../src/console-build.ts";
import { knownSystemError } from "../src/errors.ts";
import { describeMissingServers } from "../src/servers/locate.ts";
import { portError } from "../src/servers/ports.ts";
import { folder } from "./support/folder.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** What `npm start` writes before it ends; it fails before anything is started. */
function failedStart(env: Record<string, string>, args: readonly string[] = [], uid?: number) {
  const { PATH = "", HOME = "" } = process.env;
  const options = {
    env: { PATH, HOME, PARLEY_MODEL: "rehearsal", ...env },
    encoding: "utf8" as const,
    ...(uid === undefined ? {} : { uid, gid: uid }),
  };
  return spawnSync(process.execPath, ["--conditions=@parley/source", main, "--no-chat", ...args], options);
}

test("ends with two sentences and no stack trace when the data folder is a file or below one", () => {
  using place = folder();
  const file = join(place.path, "file");
  writeFileSync(file, "");
  for (const home of [file, join(file, "below")]) {
    const { status, stderr } = failedStart({ PARLEY_HOME: home });
    assert.equal(status, 1);
    assert.match(stderr, /^\S+ is a file, but a folder is needed there\.\nChoose another data folder .*\n$/, home);
  }
});

test("names the setting and the remedy when settings are wrong, and starts nothing", () => {
  using home = folder();
  writeFileSync(join(home.path, "parley.toml"), "[agent]\nmodell = 1\n");
  const { status, stderr } = failedStart({ PARLEY_HOME: home.path });
  assert.equal(status, 1);
  assert.match(stderr, /unknown key "modell"; did you mean "model"\?/);
  assert.doesNotMatch(stderr, /\n {4}at |downloading/);
});

test("says in one sentence that the console cannot be built, and goes on", async () => {
  using clone = folder();
  mkdirSync(join(clone.path, "packages/console"), { recursive: true });
  writeFileSync(join(clone.path, "pnpm-lock.yaml"), "");
  writeFileSync(join(clone.path, ".parley"), ""); // no folder: a lock in it cannot be written, not even by root
  const lines: string[] = [];
  await ensureConsole((line) => lines.push(line), clone.path);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", /^console: cannot be built; the API works without it\. .*\.parley is a file/);
});

test("removes a documentation site that is older than docs/, and keeps a current one", async () => {
  using clone = folder();
  const site = join(clone.path, "packages/console/docs-dist");
  mkdirSync(site, { recursive: true });
  mkdirSync(join(clone.path, "docs"));
  writeFileSync(join(clone.path, ".parley"), ""); // the console itself is not built
  writeFileSync(join(clone.path, "pnpm-lock.yaml"), "");
  writeFileSync(join(clone.path, "docs/page.md"), "# Before");
  writeFileSync(join(site, markerName), documentsHash(clone.path));
  await ensureConsole(() => {}, clone.path);
  assert.ok(existsSync(site));
  writeFileSync(join(clone.path, "docs/page.md"), "# After");
  const lines: string[] = [];
  await ensureConsole((line) => lines.push(line), clone.path);
  assert.ok(!existsSync(site));
  assert.match(lines[0] ?? "", /^documentation: removed the site, which was older than docs\//);
});

const ordinary = 65_534;
const lowest = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
const noOtherUser =
  (process.getuid?.() !== 0 || lowest <= 80) && "needs root to become an ordinary user, and low ports";

test("ends with two sentences when an ordinary user starts on port 80", { skip: noOtherUser }, () => {
  using home = folder();
  chownSync(home.path, ordinary, ordinary);
  const { status, stderr } = failedStart({ PARLEY_HOME: home.path }, ["--port", "80"], ordinary);
  assert.equal(status, 1, stderr);
  assert.match(stderr, /^Port 80 may only be used by root \(EACCES\)\.\nChoose a port from 1024 up .*\n$/);
});

test("ends with two sentences when the system denies to create the data folder", { timeout: 60_000 }, () => {
  for (const home of ["/proc/parley", "/proc/parley/below"]) {
    const { status, stderr } = failedStart({ PARLEY_HOME: home });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /^\/proc\/parley cannot be created\.\nChoose another data folder .*\n$/, home);
  }
});

test("explains system errors of the data folder: rights, owner, full disk", () => {
  const failure = (code: string) => Object.assign(new Error(code), { code, path: "/data" });
  for (const code of ["EACCES", "EPERM", "EROFS"]) {
    const error = knownSystemError(failure(code), "/home");
    assert.equal(error?.message, `/data cannot be written by this user (${code}).`);
    assert.match(error.fix ?? "", /PARLEY_HOME=<folder>, or change the owner/);
  }
  for (const code of ["ENOSPC", "EDQUOT"]) assert.equal(knownSystemError(failure(code), "/home")?.code, "disk_full");
  assert.equal(knownSystemError(failure("EOTHER"), "/home"), undefined);
});

test("tells a port for root apart from one that is taken", () => {
  assert.deepEqual(
    [portError(80, "EACCES", null).message, portError(80, "EACCES", null).code],
    ["Port 80 may only be used by root (EACCES).", "no_access"],
  );
  assert.equal(portError(8787, "EADDRINUSE", "node (pid 7)").message, "Port 8787 is taken by node (pid 7).");
});

test("names all missing servers at once, with the command of the machine's package manager", () => {
  const redis = { commands: ["redis-server"], minVersion: [6, 2], brewName: "redis" } as const;
  const nats = { commands: ["nats-server"], minVersion: [2, 9], brewName: "nats-server" } as const;
  assert.deepEqual(describeMissingServers([redis, nats], "dnf"), {
    message:
      "redis-server 6.2 or newer and nats-server 2.9 or newer are not installed, and there is no apt to download from.",
    fix: "Run: sudo dnf install redis nats-server. Or run everything in containers: docker compose up",
  });
  assert.match(describeMissingServers([redis], null).fix, /^Install redis with your package manager\./);
});
