// A tool-runner whose file system threads are blocked answers `/livez` with 503.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { pollUntil } from "@parley/testing/until";
import { freePort } from "@parley/local";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { launch } from "./support/launch.ts";
import { openRunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

test("answers /livez with 503 when the thread pool is blocked, and 200 when it is free again", async () => {
  const fixture = await openRunnerFixture(cleanup);
  const folder = await temporaryFolder(cleanup);
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  // Every thread of the pool waits for a writer.
  const block = join(folder, "block.mjs");
  const opening = `for (let n = 0; n < 8; n++) open(${JSON.stringify(pipe)}, "r", () => undefined)`;
  await writeFile(block, `import { open } from "node:fs";\nprocess.on("SIGUSR2", () => { ${opening} });\n`);
  const port = await freePort();
  const child = await launch(fixture, "blocked", {
    PARLEY_HEALTH_PORT: String(port),
    NODE_OPTIONS: `--import=${pathToFileURL(block).href}`,
  });
  const livez = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/livez`);
    return { status: response.status, text: await response.text() };
  };
  assert.deepEqual(await livez(), { status: 200, text: "ok\n" });
  child.kill("SIGUSR2");
  const answer = await pollUntil(async () => {
    const found = await livez();
    return found.status !== 200 && found;
  }, "the failed check");
  assert.equal(answer.status, 503);
  assert.match(answer.text, /its threads are blocked/);
  // A writer unblocks all of them; the pipe stays open because queued calls open it after the first ones have returned.
  const writer = await open(pipe, "r+");
  cleanup.add(() => writer.close());
  await pollUntil(async () => (await livez()).status === 200, "the passed check");
});
