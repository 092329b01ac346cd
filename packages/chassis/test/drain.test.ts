// The end of a service process whose work does not end.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("support/never-drained.ts", import.meta.url));

// design: 000.36c
test("exits with 1 when draining takes longer than PARLEY_DRAIN_MS", async () => {
  const drainMs = 700;
  const child = fork(program, {
    execArgv: ["--conditions=@parley/source"],
    stdio: ["ignore", "pipe", "inherit", "ipc"],
    env: { PATH: process.env["PATH"] ?? "", PARLEY_DRAIN_MS: String(drainMs) },
  });
  let log = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (log += text));
  await once(child, "message");
  const beganAt = performance.now();
  child.kill("SIGTERM");
  assert.deepEqual(await once(child, "close"), [1, null]);
  assert.ok(performance.now() - beganAt >= drainMs, "it did not wait");
  assert.match(log, /drain timed out/);
});
