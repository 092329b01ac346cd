import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { onPath } from "../src/servers/locate.ts";
import { folder } from "./support/folder.ts";

const bootstrap = fileURLToPath(new URL("../bootstrap.mjs", import.meta.url));

test("runs a script with its arguments and a Node that strips types, and returns its exit code", () => {
  using home = folder();
  const script = join(home.path, "script.ts");
  const source = `const said: string = process.env.PATH?.split(":")[0] ?? "";
    console.log(JSON.stringify([process.argv.slice(2), process.execArgv, said.endsWith("/node_modules/.bin")]));
    process.exit(Number(process.versions.node.split(".")[0]) >= 24 ? 7 : 1);`;
  writeFileSync(script, source);
  const outcome = spawnSync(process.execPath, [bootstrap, script, "--once", "two words"], { encoding: "utf8" });
  assert.deepEqual(JSON.parse(outcome.stdout), [["--once", "two words"], ["--conditions=@parley/source"], true]);
  assert.deepEqual([outcome.status, outcome.stderr], [7, ""]);
});

test("runs a tool of node_modules by its name", () => {
  const outcome = spawnSync(process.execPath, [bootstrap, "--bin", "oxfmt", "--version"], { encoding: "utf8" });
  assert.match(outcome.stdout, /\d+\.\d+\.\d+/);
  assert.equal(outcome.status, 0);
});

test("forwards a signal once and waits for the script to exit", async () => {
  using home = folder();
  const script = join(home.path, "script.ts");
  const source = `let heard = 0;
    process.on("SIGTERM", () => { heard += 1; setTimeout(() => { console.log(heard); process.exit(9); }, 50); });
    setInterval(() => {}, 1000);
    console.log("listening");`;
  writeFileSync(script, source);
  const child = spawn(process.execPath, [bootstrap, script], { stdio: ["ignore", "pipe", "inherit"] });
  // Listens from the start: the process may end before its last line is read.
  const ended = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, "listening");
  child.kill("SIGTERM");
  assert.equal((await lines.next()).value, "1");
  const [code] = (await ended) as [number];
  assert.equal(code, 9);
});

/** A clone without dependencies, whose `npx` is the given shell script. */
function clone(home: string, npx: string) {
  mkdirSync(join(home, "infra/local"), { recursive: true });
  mkdirSync(join(home, "bin"));
  cpSync(bootstrap, join(home, "infra/local/bootstrap.mjs"));
  writeFileSync(join(home, "package.json"), '{"config":{"pnpm":"12.0.0"}}');
  writeFileSync(join(home, "pnpm-lock.yaml"), "");
  writeFileSync(join(home, "run.mjs"), 'console.log("started");');
  writeFileSync(join(home, "bin/npx"), `#!/bin/sh\n${npx}\n`);
  chmodSync(join(home, "bin/npx"), 0o755);
  const env = { ...process.env, PATH: `${join(home, "bin")}:${process.env.PATH ?? ""}` };
  return { command: [process.execPath, join(home, "infra/local/bootstrap.mjs"), join(home, "run.mjs")] as const, env };
}

const progress = `echo "Progress: resolved 627, reused 0, downloaded 82, added 81"; mkdir -p node_modules`;

/** Runs a program on a terminal; null: there is none here. */
const script = onPath("script");

test("shows how many packages are installed on a terminal", { skip: script === null }, () => {
  using home = folder();
  const { command, env } = clone(home.path, progress);
  const words = command.map((word) => `'${word}'`).join(" ");
  const { stdout } = spawnSync(script ?? "script", ["-qefc", words, "/dev/null"], { encoding: "utf8", env });
  assert.match(stdout, /installing dependencies \(pnpm 12\.0\.0\): 81 of 627 packages, \d+ s\r?\n/);
  assert.match(stdout, /started/);
});

test("shows what the installation printed only when it fails, and names the reason", () => {
  using home = folder();
  const { command, env } = clone(home.path, progress);
  const [node, ...args] = command;
  const fine = spawnSync(node, args, { encoding: "utf8", env });
  assert.deepEqual([fine.stdout, fine.stderr], ["started\n", "installing dependencies (pnpm 12.0.0)\n"]);

  using broken = folder();
  const failing = clone(broken.path, "echo 'ENOSPC: no space left on device' >&2; exit 1");
  const full = spawnSync(node, failing.command.slice(1), { encoding: "utf8", env: failing.env });
  assert.equal(full.status, 1);
  assert.match(full.stderr, /ENOSPC[^\n]*\nThe disk is full\. Free some space and start again\.\n$/);
});

/** Runs the words as a user without rights; root could write everywhere. */
const ordinary = process.getuid?.() === 0 ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
const canBeOrdinary = ordinary.length === 0 || spawnSync("setpriv", [...ordinary.slice(1), "true"]).status === 0;

test("says in one sentence that the clone cannot be written", { skip: !canBeOrdinary && "no ordinary user" }, () => {
  using home = folder();
  const { command, env } = clone(home.path, progress);
  chmodSync(home.path, 0o555);
  const { status, stderr } = spawnSync("env", [...ordinary, ...command], { encoding: "utf8", env });
  chmodSync(home.path, 0o700);
  assert.equal(status, 1);
  assert.match(stderr, /cannot be written by this user \(EACCES\)\. Clone Parley into a folder of your own/);
  assert.doesNotMatch(stderr, /\n {4}at /);
});
