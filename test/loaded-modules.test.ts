// Which built-in modules a service loads with its code.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);
const services = ["agent-core", "channel-gateway", "store", "tool-runner"];

describe("the modules of a service", () => {
  for (const service of services) {
    test(`do not load the fetch client when ${service} is imported`, async () => {
      const entry = new URL(`../services/${service}/src/service.ts`, import.meta.url).href;
      const loaded = await modulesAfter(`await import(${JSON.stringify(entry)});`);
      assert.ok(loaded.includes("NativeModule http"), "the service has loaded its HTTP module");
      assert.deepEqual(loaded.filter(isFetchClient), []);
    });
  }

  test("load the fetch client with an ES import of node:http", async () => {
    assert.equal((await modulesAfter('await import("node:http");')).filter(isFetchClient).length, 1);
  });
});

const isFetchClient = (module: string) => module.endsWith("internal/deps/undici/undici");

/** The built-in modules of a new process after it has run `source`. */
async function modulesAfter(source: string): Promise<string[]> {
  const { stdout } = await run(process.execPath, [
    "--conditions=@parley/source",
    "--input-type=module",
    "--eval",
    `${source} console.log(JSON.stringify(process.moduleLoadList)); process.exit(0);`,
  ]);
  return JSON.parse(stdout) as string[];
}
