// Exit notices of background processes: sent once per exit, unless a call has reported the exit; and loss notices when the tool-runner
// dies. Over a real bus, store and database.
import assert from "node:assert/strict";
import { totalmem } from "node:os";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import type { Bus } from "@parley/bus";
import { callToken, store, toolAlive, toolCancel, type QueuedMessage } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import fc from "fast-check";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { formatExitNotice } from "../src/processes/exit-notice.ts";
import { TextRingBuffer } from "../src/processes/ring-buffer.ts";
import { checkReplicas, type Seen } from "../src/processes/replica-monitor.ts";
import { kill, launch } from "./support/launch.ts";
import { openRunnerFixture, type RunnerFixture } from "./support/runner-fixture.ts";

const cleanup = new Cleanup();
let fixture: RunnerFixture;
let gateway: Bus;

before(async () => {
  fixture = await openRunnerFixture(cleanup);
  gateway = await fixture.stack.bus("channel-gateway");
});
after(() => cleanup[Symbol.asyncDispose]());

const idIn = (content: string) => /in the background as (\S+@\S+)/.exec(content)?.[1] ?? assert.fail(content);

/** Starts a background command, with further calls of the same turn to be used later. */
async function started(command: string, more: Record<string, unknown> = {}) {
  const [exec, ...calls] = await fixture.plan([
    { tool: "exec", class: "once", input: { command, background: true, ...more } },
    ...Array.from({ length: 3 }, () => ({ tool: "process", class: "once" as const })),
  ]);
  assert.ok(exec !== undefined);
  const { result } = await fixture.call(exec);
  const id = idIn(result.content);
  const process = (args: Record<string, unknown>) => {
    const call = calls.shift();
    assert.ok(call !== undefined);
    return { ...call, input: JSON.stringify({ id, ...args }) };
  };
  return { sessionId: exec.sessionId, id, said: result.content, process };
}

async function waiting(sessionId: string): Promise<QueuedMessage[]> {
  return (await gateway.request(store.inboxList, { sessionId, limit: 100 })).rows;
}

/** Waits for the exit notice in a session. */
async function announced(sessionId: string): Promise<QueuedMessage> {
  return pollUntil(async () => {
    const [row, ...more] = await waiting(sessionId);
    assert.deepEqual(more, []);
    return row;
  }, "the exit notice");
}

/** Resolves when the store lists no running process of a session: any exit notice has been stored by then. */
async function over(sessionId: string): Promise<void> {
  await pollUntil(async () => {
    const { processes } = await gateway.request(store.processList, { sessionId });
    return processes.length === 0;
  }, "the exit in the store");
}

test("announces an unobserved exit with status, last output and how to read the rest", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("tells");
  local.add(() => runner.close());
  const { sessionId, id, said, process } = await started(
    "read go; i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 3",
  );
  assert.match(said, /You are notified when it ends/);
  assert.deepEqual(await waiting(sessionId), []);
  assert.equal((await fixture.call(process({ action: "input", input: "go\n" }))).state, "done");
  const { text, from, mode } = await announced(sessionId);
  assert.deepEqual([from.origin, from.role, from.contact.id, mode], ["process", "owner", id, "steer"]);
  assert.match(text, /^Background process ended: "read go; [^]*exit code 3 · \d+\.\d s · isolation: /);
  assert.match(text, /\[untrusted (\w+): the last output of the command[^]*line 2999\n\[end of untrusted \1\]/);
  assert.doesNotMatch(text, /line 2900\n/);
  assert.ok(text.includes(`process({"action":"log","id":"${id}"})`), text);
});

test("does not announce an exit that a poll, a list or a signal has reported", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("told");
  local.add(() => runner.close());

  const polled = await started("read go; echo over");
  await fixture.call(polled.process({ action: "input", input: "go\n", end: true }));
  for (let text = ""; !text.includes("has ended");) {
    const rights = { sessionId: polled.sessionId };
    const [poll] = await fixture.plan([{ tool: "process", class: "once" }], { rights });
    assert.ok(poll !== undefined);
    const input = JSON.stringify({ action: "poll", id: polled.id, wait_seconds: 20 });
    const answer = await fixture.call({ ...poll, sessionId: polled.sessionId, input });
    text += answer.result.content;
  }
  const killed = await started("sleep 600");
  const answer = await fixture.call(killed.process({ action: "signal", signal: "SIGKILL" }));
  assert.match(answer.result.content, /SIGKILL was sent\.\n\[\S+ has ended\]\n\[(killed by SIGKILL|exit code 137)/);

  for (const { sessionId } of [polled, killed]) {
    await over(sessionId);
    assert.deepEqual(await waiting(sessionId), []);
  }
  const listed = await started("true");
  await announced(listed.sessionId);
  await fixture.call(listed.process({ action: "list", id: undefined }));
  assert.deepEqual(await waiting(listed.sessionId), [], "a queued exit notice is removed");
});

test("announces the exit when the poll that saw it was cancelled", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("cut");
  local.add(() => runner.close());
  const { sessionId, process } = await started("read go");
  const poll = process({ action: "poll", wait_seconds: 100 });
  const begun = Promise.withResolvers<void>();
  const alive = fixture.core.subscribe(toolAlive, { call: callToken(poll.turnId, poll.n) }, () => begun.resolve());
  await fixture.core.flush();
  const answer = fixture.call(poll, 60_000);
  await begun.promise;
  alive.close();
  const { turnId, n } = poll;
  fixture.core.publish(toolCancel, { epoch: fixture.epoch, turnId, n }, { call: callToken(turnId, n) });
  assert.equal((await answer).state, "cancelled");
  await fixture.call(process({ action: "input", input: "go\n", end: true }));
  assert.match((await announced(sessionId)).text, /exit code 0/);
});

test("sends no exit notice with notify = false", async () => {
  await using local = new Cleanup();
  const runner = await fixture.runner("quiet");
  local.add(() => runner.close());
  const { sessionId, said } = await started("true", { notify: false });
  assert.doesNotMatch(said, /You are notified/);
  await over(sessionId);
  assert.deepEqual(await waiting(sessionId), []);
});

test("announces the processes that end when the tool-runner stops", async () => {
  const runner = await fixture.runner("stops");
  const { sessionId, process } = await started("echo begun; sleep 600");
  const poll = await fixture.call(process({ action: "poll", wait_seconds: 20 }));
  assert.match(poll.result.content, /^(begun|\(no new output\))\n\[\S+ is running/);
  await runner.close();
  assert.match((await announced(sessionId)).text, /the command was cancelled[^]*begun/);
});

test("announces lost processes once when the tool-runner is killed (-9)", async () => {
  await using local = new Cleanup();
  const child = await launch(fixture, "killed");
  const { sessionId, id } = await started("sleep 600");
  // Two replicas poll: only the first one reports it.
  for (const name of ["looks", "looks-too"]) {
    const runner = await fixture.runner(name, { watchTimes: { renewMs: 100, looks: 200 } });
    local.add(() => runner.close());
  }
  await kill(child);
  const looking = await fixture.runner("sees", { watchTimes: { renewMs: 50, looks: 3 } });
  local.add(() => looking.close());
  const { text, from } = await announced(sessionId);
  assert.equal(from.contact.id, id);
  assert.match(text, /The background command "sleep 600" \(\S+@killed\) is lost: the tool-runner that ran it stopped/);
  await over(sessionId);
});

test("announces the lost processes of its previous instance immediately after a restart", async () => {
  const child = await launch(fixture, "again");
  const { sessionId } = await started("sleep 600");
  await kill(child);
  const successor = await launch(fixture, "again");
  assert.match((await announced(sessionId)).text, /is lost/);
  await kill(successor);
});

test("property: never declares a replica gone that keeps reporting", () => {
  const me = { replica: "me", incarnation: "2" };
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 40 }), fc.integer({ min: 2, max: 5 }), (signs, looks) => {
      let seen: Seen = new Map();
      let at = 0;
      let silent = 0;
      for (const sign of signs) {
        if (sign) at += 1;
        silent = sign ? 1 : silent + 1;
        const outcome = checkReplicas(seen, [{ runner: "other#1", seenAt: new Date(at).toISOString() }], me, looks);
        seen = outcome.seen;
        assert.equal(outcome.lost.length === 1, silent >= looks, `silent for ${silent} polls of ${looks}`);
      }
    }),
  );
  const earlier = [{ runner: "me#1", seenAt: "now" }];
  assert.deepEqual(checkReplicas(new Map(), earlier, me, 9).lost, earlier, "a previous instance has certainly ended");
  assert.deepEqual(checkReplicas(new Map(), [{ runner: "me-too#1", seenAt: "now" }], me, 9).lost, []);
});

test("property: keeps the notice short and well-formed, with the end of the output", () => {
  const end = { exitCode: 0, signal: null, stopReason: undefined, durationMs: 1, head: "", tail: "" } as const;
  const report = {
    ...end,
    totalBytes: 0,
    missingBytes: 0,
    spill: undefined,
    limitsReached: { memory: false, processes: false },
  };
  const around = { timeoutSeconds: 1, limits: defaultExecLimits(totalmem()), isolation: "none" };
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.string({ maxLength: 5_000 }), (lines, command) => {
      const output = new TextRingBuffer(1_000);
      const printed = lines.join("\n");
      output.push(Buffer.from(printed));
      const text = formatExitNotice({ id: "1@x", command, output, end: report }, around);
      assert.ok(text.length < 5_000 && text.isWellFormed());
      assert.ok(text.includes(printed.toWellFormed().slice(-1)));
      assert.match(text, /exit code 0/);
    }),
  );
});
