// A service in the test's process that ends or hangs fails the test that stops it.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { startInProcess } from "../src/in-process-replica.ts";

const folders: string[] = [];
after(() => Promise.all(folders.map((path) => rm(path, { recursive: true, force: true }))));

/** Starts a service with this `ended` and `close`. */
async function started(service: string) {
  const folder = await mkdtemp(join(tmpdir(), "parley-in-process-"));
  folders.push(folder);
  await writeFile(join(folder, "config.ts"), "export const readConfig = (env: object, base: object) => base;\n");
  await writeFile(join(folder, "service.ts"), `export const start = async () => (${service});\n`);
  const changed = Promise.withResolvers<void>();
  let changes = 0;
  const replica = startInProcess({
    service: "store",
    number: 1,
    entry: join(folder, "main.ts"),
    env: { PARLEY_NATS_URL: "nats://127.0.0.1:1" },
    httpPort: null,
    // The first change is its readiness.
    onChange: () => (++changes > 1 ? changed.resolve() : undefined),
  });
  await replica.firstReady;
  return { replica, folder, changed: changed.promise };
}

test("rejects the stop of a service that has ended by itself, and is no longer ready", async () => {
  const { replica, changed } = await started(
    '{ ended: new Promise((resolve) => setTimeout(resolve, 50, new Error("bus closed"))), close: async () => undefined }',
  );
  assert.equal(replica.state().ready, true);
  await changed;
  assert.equal(replica.state().ready, false);
  await assert.rejects(replica.stop(1_000), /store-1 ended by itself/);
});

test("rejects the stop of a service that does not close in time", async () => {
  const { replica } = await started(
    "{ ended: new Promise(() => undefined), close: () => new Promise(() => undefined) }",
  );
  await assert.rejects(replica.stop(20), /store-1 did not stop within 20 ms/);
});

test("closes a service also when the cluster stops without a drain", async () => {
  const { replica, folder } = await started(
    `{ ended: new Promise(() => undefined), close: async () => void (await import("node:fs")).writeFileSync(new URL("closed", import.meta.url), "") }`,
  );
  await replica.stop(0);
  assert.ok(existsSync(join(folder, "closed")));
});
