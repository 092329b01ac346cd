// An upgrade in which NATS still has the permissions of the previous version: the services report this and exit.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { natsPermissions, services, type ServiceName } from "@parley/contracts";
import type { NatsServer } from "@parley/local";
import { Cleanup, startStoreStack, startTestNats, temporaryFolder } from "@parley/testing";

const cleanup = new Cleanup();
let nats: NatsServer;
let databaseUrl: string;
let workspace: string;

before(async () => {
  // Creates the schema: a store starts to serve when the schema exists.
  ({
    postgres: { storeUrl: databaseUrl },
  } = await startStoreStack(cleanup));
  // Removes the permission to subscribe to the newest subject.
  nats = await startTestNats(cleanup, (role) => {
    const { subscribe, ...rest } = natsPermissions(role, "parley");
    return { ...rest, subscribe: subscribe.filter((subject) => subject !== `parley.health.${role}`) };
  });
  workspace = join(await temporaryFolder(cleanup), "workspace");
  await mkdir(workspace);
});
after(() => cleanup[Symbol.asyncDispose]());

const own = (service: ServiceName): Record<string, string> =>
  ({
    store: { DATABASE_URL: databaseUrl },
    "agent-core": { REDIS_URL: "redis://127.0.0.1:1" },
    "tool-runner": { PARLEY_WORKSPACE: workspace, PARLEY_EXEC_ISOLATION: "none" },
    "channel-gateway": { PARLEY_HTTP_PORT: "0", PARLEY_TOKEN_SHA256: "0".repeat(64) },
  })[service];

for (const service of services) {
  test(`exits with instructions when NATS denies a subject that ${service} serves`, async () => {
    const main = join(import.meta.dirname, "../../services", service, "src/main.ts");
    const child = spawn(process.execPath, ["--conditions=@parley/source", main], {
      env: {
        PATH: process.env["PATH"],
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        PARLEY_NATS_URL: nats.urlFor(service),
        PARLEY_HEALTH_PORT: "0",
        ...own(service),
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
    cleanup.add(async () => void child.kill("SIGKILL"));
    const [, said] = await Promise.all([once(child, "exit"), text(child.stderr)]);
    assert.match(
      said,
      new RegExp(
        `NATS denies ${service} the subscription to parley\\.health\\.${service}: .*this version's nats\\.conf`,
      ),
    );
    assert.equal(child.exitCode, 1);
  });
}
