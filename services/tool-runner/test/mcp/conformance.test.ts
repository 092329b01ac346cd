// The protocol's conformance suite against the tool-runner's own client: connecting, calling, resuming streams, and every
// supported way of authorization.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { z } from "zod";
import { runConformanceClient } from "./conformance-client.ts";
import { conformance } from "./programs.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const client = fileURLToPath(new URL("servers/conformance-client.mjs", import.meta.url));
const Run = z.object({ url: z.string(), scenario: z.string().default(""), context: z.string().optional() });

/** Runs the client for the program that the suite starts. */
const clients = createServer((request, response) => {
  const run = async (): Promise<void> => {
    const { url, scenario, context } = Run.parse(await json(request));
    await runConformanceClient({ url, scenario, context });
  };
  run().then(
    () => response.end(),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
});
before(async () => {
  clients.listen(0, "127.0.0.1");
  await once(clients, "listening");
  cleanup.add(async () => void clients.close());
});

const scenarios = [
  "initialize",
  "tools_call",
  "sse-retry",
  "elicitation-sep1034-client-defaults",
  "auth/basic-cimd",
  "auth/metadata-default",
  "auth/metadata-var1",
  "auth/metadata-var2",
  "auth/metadata-var3",
  "auth/scope-from-www-authenticate",
  "auth/scope-from-scopes-supported",
  "auth/scope-omitted-when-undefined",
  "auth/scope-step-up",
  "auth/scope-retry-limit",
  "auth/token-endpoint-auth-basic",
  "auth/token-endpoint-auth-post",
  "auth/token-endpoint-auth-none",
  "auth/pre-registration",
  "auth/resource-mismatch",
  "auth/offline-access-scope",
  "auth/offline-access-not-supported",
  "auth/client-credentials-basic",
  "auth/client-credentials-jwt",
  "auth/cross-app-access-complete-flow",
  "auth/2025-03-26-oauth-endpoint-fallback",
  "auth/2025-03-26-oauth-metadata-backcompat",
];

describe("the client passes the scenario", { concurrency: 2 }, () => {
  for (const scenario of scenarios) {
    test(scenario, async () => {
      const { port } = clients.address() as AddressInfo;
      const command = `${process.execPath} ${client} ${port}`;
      const folder = await temporaryFolder(cleanup);
      const args = [conformance, "client", "--command", command, "--scenario", scenario, "-o", folder];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: folder });
      assert.match(stdout + stderr, /Passed: [1-9]\d*\/\d+, 0 failed, 0 warnings/);
    });
  }
});
