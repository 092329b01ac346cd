// The protocol's conformance suite against the tool-runner's own client: connecting, calling, resuming streams, and every
// supported way of authorization.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json, text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { z } from "zod";
import { runConformanceClient } from "./conformance-client.ts";
import { conformance } from "./programs.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const client = fileURLToPath(new URL("servers/conformance-client.mjs", import.meta.url));
const Run = z.object({ url: z.string(), scenario: z.string().default(""), context: z.string().optional() });

/** The error of each scenario's client; null: it called every tool. */
const errors = new Map<string, Error | null>();

/** Runs the client for the program that the suite starts. */
const clients = createServer((request, response) => {
  const run = async (): Promise<void> => {
    const { url, scenario, context } = Run.parse(await json(request));
    errors.set(scenario, new Error("did not end"));
    const error = await runConformanceClient({ url, scenario, context }).then(
      () => null,
      (reason: unknown) => (reason instanceof Error ? reason : new Error(String(reason))),
    );
    errors.set(scenario, error);
    if (error !== null) throw error;
  };
  run().then(
    () => response.end(),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
});

/** Runs the suite's program with the client for one scenario or several; resolves with its exit code and its output. */
async function runSuite(...selection: string[]): Promise<{ code: number | null; output: string }> {
  const { port } = clients.address() as AddressInfo;
  const command = `${process.execPath} ${client} ${port}`;
  const folder = await temporaryFolder(cleanup);
  const args = [conformance, "client", "--command", command, "--timeout", "240000", "-o", folder, ...selection];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: child.exitCode, output: stdout + stderr };
}

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

/** Scenarios whose server never accepts the client: its error is the expected end. */
const refused: ReadonlySet<string> = new Set(["auth/scope-retry-limit", "auth/resource-mismatch"]);

describe("the client passes the scenario", () => {
  before(async () => {
    clients.listen(0, "127.0.0.1");
    await once(clients, "listening");
    cleanup.add(async () => void clients.close());
  });

  for (const scenario of scenarios.filter((name) => !name.startsWith("auth/"))) {
    test(scenario, async () => {
      const { code, output } = await runSuite("--scenario", scenario);
      assert.match(output, /Passed: [1-9]\d*\/\d+, 0 failed, 0 warnings/);
      assert.equal(code, 0, output);
    });
  }

  // One process for each kind: loading the suite takes most of the CPU time of a scenario.
  const kinds = ["auth", "backcompat", "draft", "extensions"];
  let output: string;
  before(async () => {
    output = "";
    for (const kind of kinds) output += (await runSuite("--suite", kind)).output;
  });
  for (const scenario of scenarios.filter((name) => name.startsWith("auth/"))) {
    test(scenario, () => {
      const summary = output.split("\n").find((line) => line.includes(` ${scenario}: `));
      assert.match(summary ?? "not run", /^✓ \S+: [1-9]\d* passed, 0 failed$/, output);
      if (!refused.has(scenario)) assert.equal(errors.get(scenario), null);
    });
  }
});
