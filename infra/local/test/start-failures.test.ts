import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { knownSystemError } from "../src/errors.ts";
import { missingText } from "../src/servers/locate.ts";
import { portError } from "../src/servers/ports.ts";
import { folder } from "./support/folder.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** What `npm start` writes before it ends; it fails before anything is started. */
function failedStart(env: Record<string, string>, ...args: string[]) {
  const { PATH = "", HOME = "" } = process.env;
  const options = { env: { PATH, HOME, PARLEY_MODEL: "rehearsal", ...env }, encoding: "utf8" as const };
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
  const redis = { commands: ["redis-server"], oldest: [6, 2], brew: "redis" } as const;
  const nats = { commands: ["nats-server"], oldest: [2, 9], brew: "nats-server" } as const;
  assert.deepEqual(missingText([redis, nats], "dnf"), {
    message:
      "redis-server 6.2 or newer and nats-server 2.9 or newer are not installed, and there is no apt to download from.",
    fix: "Run: sudo dnf install redis nats-server. Or run everything in containers: docker compose up",
  });
  assert.match(missingText([redis], null).fix, /^Install redis with your package manager\./);
});
