// Calls that only read files start while their step is being committed.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import pg from "pg";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let sql: pg.Client;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["store", "tool-runner"],
    settings: `
[session]
policy = "per_conversation"
[permissions]
allow = ["exec"]
[[hooks]]
name = "seen"
event = "PreToolUse"
matcher = "glob"
command = "true"
`,
  });
  sql = new pg.Client({ connectionString: fixture.cluster.databaseUrl });
  await sql.connect();
  cleanup.add(() => sql.end());
});
after(() => cleanup[Symbol.asyncDispose]());

/** Tool steps that the store has of the turn of a message. */
async function storedCalls(messageId: string): Promise<number> {
  const { rows } = await sql.query(
    "SELECT FROM parley.steps s JOIN parley.turns t ON t.id = s.turn_id WHERE t.inbox_id = $1 AND s.kind = 'tool'",
    [messageId],
  );
  return rows.length;
}

const isArmed = async (point: string) => (await fixture.cluster.armed()).includes(point);

for (const { title, call, result, ahead } of [
  { title: "starts a call that reads files", call: 'grep {"pattern":"needle"}', result: /hay\.txt/, ahead: true },
  { title: "starts no command", call: 'exec {"command":"echo needle"}', result: /needle/, ahead: false },
  { title: "starts no call that a hook sees", call: 'glob {"pattern":"*.txt"}', result: /hay\.txt/, ahead: false },
]) {
  test(`${title} before its step is stored`, async () => {
    await writeFile(join(fixture.cluster.home, "workspace", "hay.txt"), "a needle\n");
    await fixture.turn("say: ready", title);
    // The store receives the step and does not commit it yet.
    await fixture.cluster.fault("store.before_commit", "block:1000");
    await fixture.cluster.fault("tool.running", "block:1");
    const messageId = await fixture.client.post(`tool: ${call}\nthen\nsay: done`, { conversation: title });
    const running = async () => !(await isArmed("tool.running"));
    const stored = async () => (await storedCalls(messageId)) > 0;
    await pollUntil(async () => (await running()) || (await stored()), "the call or its step");
    assert.equal(await stored(), !ahead);
    const turn = await fixture.ended(messageId);
    assert.equal(turn.text, "done");
    assert.equal(turn.results.length, 1);
    assert.match(turn.results[0]?.content ?? "", result);
    assert.equal(await running(), true, "it ran");
  });
}

test("refuses a call that was started when a rule that was added during the model call denies it", async () => {
  await fixture.turn("say: ready", "rules");
  const { sessionId } = await fixture.session("http:default:rules");
  const messageId = await fixture.client.post('pause: 1000\ntool: grep {"pattern":"needle"}\nthen\nsay: done', {
    conversation: "rules",
  });
  await fixture.begun(messageId);
  await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { deny: ["grep"] } });
  const turn = await fixture.ended(messageId);
  assert.match(turn.results[0]?.content ?? "", /^Not allowed/);
});
