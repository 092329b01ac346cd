// The escape suite: tries every known way to break out of the tool-runner. The results are checked from outside, in files, processes,
// sockets and counters, never by what the tools report about themselves. The last test counts the attempts and the escapes.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { openRunnerFixture, type RunnerFixture } from "../support/runner-fixture.ts";
import { diskAttempts } from "./disk.ts";
import { documentAttempts } from "./documents.ts";
import { egressAttempts } from "./egress.ts";
import { environmentAttempts } from "./environment.ts";
import { kernelAttempts } from "./kernel.ts";
import { tally } from "./ledger.ts";
import { mcpAttempts } from "./mcp.ts";
import { networkAttempts } from "./network.ts";
import { pathAttempts } from "./paths.ts";
import { processAttempts } from "./processes.ts";
import { openEscapeFixture, type EscapeFixture } from "./fixture.ts";
import { sessionAttempts } from "./sessions.ts";
import { webAttempts } from "./web.ts";

const atLeast = 60;
const cleanup = new Cleanup();
let opened: EscapeFixture | undefined;
let alone: RunnerFixture | undefined;

before(async () => {
  opened = await openEscapeFixture(cleanup);
  alone = await openRunnerFixture(cleanup);
});
after(() => cleanup[Symbol.asyncDispose]());

function fixture(): EscapeFixture {
  assert.ok(opened !== undefined);
  return opened;
}

function emptyStage(): RunnerFixture {
  assert.ok(alone !== undefined);
  return alone;
}

describe("paths", () => pathAttempts(fixture));
describe("environment", () => environmentAttempts(fixture));
describe("network", () => networkAttempts(fixture, cleanup));
describe("egress", () => egressAttempts(cleanup));
describe("kernel", () => kernelAttempts(fixture));
describe("processes", () => processAttempts(emptyStage));
describe("the disk", () => diskAttempts());
describe("sessions", () => sessionAttempts(fixture));
describe("documents", () => documentAttempts(fixture));
describe("the web", () => webAttempts(cleanup));
describe("MCP", () => mcpAttempts(emptyStage));

test(`makes at least ${atLeast} attempts, and none escapes`, (t) => {
  const { ran, escaped, notMade } = tally();
  t.diagnostic(`escape suite: ${ran} attempts, ${escaped.length} escaped, ${notMade.length} not made`);
  for (const { title, why } of notMade) t.diagnostic(`not made, ${why}: ${title}`);
  assert.deepEqual(escaped, []);
  assert.ok(ran + notMade.length >= atLeast);
});
