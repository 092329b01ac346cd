// A turn whose beginning was removed by a compaction, in a whole cluster: what it has sent to people still counts at its end, also for
// the leader that continues it.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { SessionEvent } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { startClusterFixture, waitingFor, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let workspace: string;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core"],
    replicas: { "agent-core": 2 },
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "steer"
[output]
mode = "message_tool"
[agent]
max_output_tokens = 1000
[models.known.rehearsal]
context_window = 24000
[compaction]
keep_last = 1
[permissions]
allow = ["exec"]
`,
  });
  workspace = join(fixture.cluster.home, "workspace");
  await mkdir(workspace, { recursive: true });
  for (let file = 0; file < 8; file++)
    await writeFile(join(workspace, `long${file}.txt`), `${file}\n${"words and words and words\n".repeat(700)}`);
});
after(() => cleanup[Symbol.asyncDispose]());

const reading = Array.from({ length: 8 }, (_, file) => `tool: read {"path":"long${file}.txt"}`).join("\nthen\n");

/** Starts a turn that sends its answer, is then compacted, and waits. The result ends it with an internal text. */
async function answeredAndCompacted(
  conversation: string,
): Promise<() => Promise<{ messageId: string; turnId: string }>> {
  const answer = 'tool: message {"text":"the answer"}';
  const messageId = await fixture.client.post(`${answer}\nthen\n${waitingFor(conversation)}`, { conversation });
  const turnId = await fixture.begun(messageId);
  const waits = (event: SessionEvent) =>
    event.type === "tool.started" && event.turnId === turnId && event.tool === "exec";
  await fixture.happens(waits);
  // It joins in place of the first message, whose script would otherwise begin again after the compaction.
  const next = `${conversation}-next`;
  await fixture.client.post(`${reading}\nthen\n${waitingFor(next)}`, { conversation });
  await writeFile(join(workspace, conversation), "");
  await fixture.happens((event) => event.type === "compacted" && event.turnId === turnId);
  await fixture.happens(() => fixture.events.filter(waits).length === 2);
  return async () => {
    await fixture.client.post("say: internal text", { conversation });
    await writeFile(join(workspace, next), "");
    return { messageId, turnId };
  };
}

test("ends with what it has sent when compaction has removed the sent message", async () => {
  const end = await answeredAndCompacted("sent");
  const { messageId, turnId } = await end();
  const turn = await fixture.ended(messageId);
  assert.deepEqual([turn.turnId, turn.text], [turnId, "the answer"]);
  assert.ok(!JSON.stringify(turn.messages).includes("[Nothing was said:"), "it is not asked to send an answer again");
});

test("ends with what it has sent when the next leader continues it after a compaction", async () => {
  const end = await answeredAndCompacted("passed-on");
  await fixture.cluster.fault("agent.before_model", "kill");
  const { messageId, turnId } = await end();
  const turn = await fixture.ended(messageId);
  assert.deepEqual(await fixture.cluster.armed(), []);
  assert.deepEqual([turn.turnId, turn.text], [turnId, "the answer"]);
});

test("ends a turn that fills the window when nothing can be removed for it", async () => {
  const conversation = "full";
  await fixture.turn("say: hello", conversation);
  const rounds = Array.from({ length: 6 }, (_, round) => `stop: model_context_window_exceeded\nsay: part ${round}`);
  const turn = await fixture.turn(`${"words of the owner\n".repeat(1_500)}${rounds.join("\nthen\n")}`, conversation);
  assert.equal(turn.exitReason, "max_tokens");
  assert.match(turn.text ?? "", /^part 0\n\npart 1\n\n\[My answer was cut off because/);
});
