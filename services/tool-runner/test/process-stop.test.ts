// What `/stop all` asks of a tool-runner, asked as the gateway's own user of NATS: a session's commands end, nobody is told of it, and
// nothing else may be done to them.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Bus } from "@parley/bus";
import { store, toolProcess, toolProcesses, toolStop, WireError } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { openStage, type Stage } from "./support/stage.ts";
import { until } from "./support/until.ts";

const cleanup = new Cleanup();
let stage: Stage;
let gateway: Bus;
let workspace: string;

before(async () => {
  stage = await openStage(cleanup);
  gateway = await stage.stack.bus("channel-gateway");
  ({ workspace } = await stage.config("keeps"));
  await stage.runner("keeps");
});
after(() => cleanup[Symbol.asyncDispose]());

/** A command in the background that goes on until it is let go, and then leaves a file behind. */
async function begin(name: string) {
  const file = (kind: string) => join(workspace, `${name}.${kind}`);
  const command = `echo $$ > ${name}.pid; while [ ! -e ${name}.go ]; do sleep 0.05; done; echo done > ${name}.through`;
  const [exec] = await stage.plan([{ tool: "exec", class: "once", input: { command, background: true } }]);
  assert.ok(exec !== undefined);
  const { content } = (await stage.call(exec)).result;
  const id = /in the background as (\S+@\S+)/.exec(content)?.[1] ?? assert.fail(content);
  await until(() => existsSync(file("pid")) && readFileSync(file("pid"), "utf8").endsWith("\n"), "it runs");
  return {
    sessionId: exec.sessionId,
    id,
    runs: () => existsSync(`/proc/${readFileSync(file("pid"), "utf8").trim()}`),
    goesThrough: async () => {
      await writeFile(file("go"), "");
      await until(() => existsSync(file("through")), "it went on to its end");
    },
  };
}

const listed = async (sessionId: string) => (await gateway.request(store.processList, { sessionId })).processes;
/** Resolves when the store knows that nothing of a session runs any more: what is to be announced has been by then. */
const over = async (sessionId: string) => {
  while ((await listed(sessionId)).length > 0);
};
const waiting = async (sessionId: string) => (await gateway.request(store.inboxList, { sessionId, limit: 10 })).rows;

test("a session's commands are ended and nobody is told; another session's go on", { timeout: 60_000 }, async () => {
  const theirs = await begin("theirs");
  const ours = await begin("ours");
  const stop = () => gateway.request(toolStop, { sessionId: ours.sessionId }, { params: { replica: "keeps" } });
  assert.ok(ours.runs());
  await stop();
  assert.equal(ours.runs(), false);
  await over(ours.sessionId);
  assert.deepEqual(await waiting(ours.sessionId), []);
  assert.equal((await listed(theirs.sessionId)).length, 1);
  // Once more ends nothing, and is no error.
  await stop();
  await theirs.goesThrough();
});

test("what has ended by itself before is told all the same", { timeout: 60_000 }, async () => {
  const ended = await begin("ended");
  await ended.goesThrough();
  await over(ended.sessionId);
  await gateway.request(toolStop, { sessionId: ended.sessionId }, { params: { replica: "keeps" } });
  assert.equal((await waiting(ended.sessionId)).length, 1);
});

test("NATS lets the gateway neither list nor read, feed or signal what a session runs", async () => {
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

/** The server itself said no: nobody heard of the question. */
function refusedByNats(error: unknown): boolean {
  const causes: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) causes.push(`${at.name}: ${at.message}`);
  assert.match(causes.join("; "), /Permissions Violation for Publish/i);
  return WireError.is(error);
}
