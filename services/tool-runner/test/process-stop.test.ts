// `/stop all` on a tool-runner, sent as the gateway's NATS user: it ends a session's commands without a notice, and the gateway can do
// nothing else to them.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import type { Bus } from "@parley/bus";
import { store, toolProcess, toolProcesses, toolStop, WireError } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let gateway: Bus;
let workspace: string;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  gateway = await fixture.stack.bus("channel-gateway");
  ({ workspace } = await fixture.config("keeps"));
  await fixture.runner("keeps");
});
after(() => cleanup[Symbol.asyncDispose]());

/** Starts a background command that runs until it is released, and then creates a file. */
async function begin(name: string) {
  const file = (kind: string) => join(workspace, `${name}.${kind}`);
  const command = `echo $$ > ${name}.pid; while [ ! -e ${name}.go ]; do sleep 0.05; done; echo done > ${name}.through`;
  const [exec] = await fixture.plan([{ tool: "exec", class: "once", input: { command, background: true } }]);
  assert.ok(exec !== undefined);
  const { content } = (await fixture.call(exec)).result;
  const id = /in the background as (\S+@\S+)/.exec(content)?.[1] ?? assert.fail(content);
  await pollUntil(() => existsSync(file("pid")) && readFileSync(file("pid"), "utf8").endsWith("\n"), "it is running");
  return {
    sessionId: exec.sessionId,
    id,
    runs: () => existsSync(`/proc/${readFileSync(file("pid"), "utf8").trim()}`),
    goesThrough: async () => {
      await writeFile(file("go"), "");
      await pollUntil(() => existsSync(file("through")), "it ran to its end");
    },
  };
}

const listed = async (sessionId: string) => (await gateway.request(store.processList, { sessionId })).processes;
/** Resolves when the store lists no running process of a session: any exit notice has been stored by then. */
const over = (sessionId: string) =>
  pollUntil(async () => (await listed(sessionId)).length === 0, "the end of the processes");
const waiting = async (sessionId: string) => (await gateway.request(store.inboxList, { sessionId, limit: 10 })).rows;

test("ends a session's commands without a notice, and leaves other sessions alone", async () => {
  const theirs = await begin("theirs");
  const ours = await begin("ours");
  const stop = () => gateway.request(toolStop, { sessionId: ours.sessionId }, { params: { replica: "keeps" } });
  assert.ok(ours.runs());
  await stop();
  assert.equal(ours.runs(), false);
  await over(ours.sessionId);
  assert.deepEqual(await waiting(ours.sessionId), []);
  assert.equal((await listed(theirs.sessionId)).length, 1);
  // A second request ends nothing and is no error.
  await stop();
  await theirs.goesThrough();
});

test("still announces a process that had ended by itself before", async () => {
  const ended = await begin("ended");
  await ended.goesThrough();
  await over(ended.sessionId);
  await gateway.request(toolStop, { sessionId: ended.sessionId }, { params: { replica: "keeps" } });
  assert.equal((await waiting(ended.sessionId)).length, 1);
});

test("denies the gateway listing, reading, feeding and signalling processes", async () => {
  const { sessionId, id, goesThrough } = await begin("spied");
  const question = { sessionId, id, waitMs: 0, offset: null, limit: 100, input: "", end: false } as const;
  const timeoutMs = 500;
  const asked = [
    () => gateway.request(toolProcesses, { sessionId }, { timeoutMs }),
    ...(["poll", "log", "input", "signal"] as const).map(
      (action) => () =>
        gateway.request(
          toolProcess,
          { ...question, action, signal: "SIGKILL" },
          { params: { replica: "keeps" }, timeoutMs },
        ),
    ),
  ];
  for (const ask of asked) await assert.rejects(ask, refusedByNats);
  assert.equal((await listed(sessionId)).length, 1);
  await goesThrough();
});

/** The NATS server rejected the publish: no service received the request. */
function refusedByNats(error: unknown): boolean {
  const causes: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) causes.push(`${at.name}: ${at.message}`);
  assert.match(causes.join("; "), /Permissions Violation for Publish/i);
  return WireError.is(error);
}
