import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

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
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, "listening");
  child.kill("SIGTERM");
  assert.equal((await lines.next()).value, "1");
  const [code] = (await once(child, "exit")) as [number];
  assert.equal(code, 9);
});
