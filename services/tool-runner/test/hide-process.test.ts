// Commands in a container run as the service's user: what they can read of its process under /proc.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { unprivileged } from "../../../infra/local/src/servers/unprivileged.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** Starts a program with a secret in its environment, and tries to read the secret from another process of the same user. */
const attack = `
import { spawn } from "node:child_process";
import { openSync, readFileSync, readlinkSync } from "node:fs";
const [program, ...args] = process.argv.slice(2);
const child = spawn(program, args, { env: { PATH: process.env.PATH, SEED: "the-seed" }, stdio: ["pipe", "pipe", "inherit"] });
await new Promise((resolve) => child.stdout.once("data", resolve));
const attempt = (act) => { try { return act(); } catch (error) { return error.code; } };
const of = "/proc/" + child.pid + "/";
console.log(JSON.stringify({
  environment: attempt(() => readFileSync(of + "environ", "utf8").includes("SEED=the-seed")),
  memory: attempt(() => openSync(of + "mem", "r") > 0),
  descriptors: attempt(() => readlinkSync(of + "fd/2") !== ""),
  copies: attempt(() => openSync(of + "root/etc/passwd", "r") > 0),
}));
child.kill("SIGKILL");
`;

/** What a process of the same user, without root's rights, reads of the program. */
async function readable(program: string, ...args: string[]): Promise<Record<string, unknown>> {
  const folder = await temporaryFolder(cleanup);
  const file = join(folder, "attack.mjs");
  await writeFile(file, attack);
  const user = await unprivileged(folder);
  user.own(folder);
  const [command, line] = user.wrap(process.execPath, [file, program, ...args]);
  const { stdout } = await promisify(execFile)(command, [...line]);
  return JSON.parse(stdout) as Record<string, unknown>;
}

const hideModule = new URL("../src/sandbox/hide-process.ts", import.meta.url).href;
/** Reports when it is ready, then waits for its end. */
const waits = `process.stdout.write("ready"); process.stdin.resume();`;
const hides = `const { hideProcess } = await import(${JSON.stringify(hideModule)}); if (hideProcess()) { ${waits} }`;

const open = { environment: true, memory: true, descriptors: true, copies: true };
const hidden = { environment: "EACCES", memory: "EACCES", descriptors: "EACCES", copies: "EACCES" };

test("hides environment, memory and descriptors from processes of the same user", async () => {
  const evaluate = ["--input-type=module", "--eval"];
  assert.deepEqual(await readable(process.execPath, ...evaluate, waits), open);
  assert.deepEqual(await readable(process.execPath, ...evaluate, hides), hidden);
});

test("hides a process whose program file its user cannot read, as in the images", async () => {
  const folder = await temporaryFolder(cleanup);
  await chmod(folder, 0o755);
  const program = join(folder, "health-shell");
  await copyFile("/bin/bash", program);
  const script = ["-c", "echo ready; read -r"];
  await chmod(program, 0o755);
  assert.deepEqual(await readable(program, ...script), open);
  // The images give 0711 to root's file; here the user may own it.
  await chmod(program, 0o111);
  assert.deepEqual(await readable(program, ...script), hidden);
});
