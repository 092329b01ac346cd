// A conversation that is compacted during a turn, in a whole cluster: the taint and the audience of the turn still apply, also
// for the leader that continues it.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ViewRecordSchema, type SessionEvent } from "@parley/contracts";
import { Cleanup, startTelegramPeer, type TelegramPeer } from "@parley/testing";
import pg from "pg";
import { startClusterFixture, waitingFor, type ClusterFixture } from "./presets/support/fixture.ts";
import { writeDocument } from "./support/jobs.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;
let telegram: TelegramPeer;
let workspace: string;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core"],
    replicas: { "agent-core": 2 },
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "steer"
[agent]
max_output_tokens = 1000
[models.known.rehearsal]
context_window = 24000
[compaction]
keep_last = 1
[permissions]
allow = ["exec"]
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1"]
groups = ["-100"]
`,
    secrets: { PARLEY_CHANNEL_TELEGRAM: telegram.token },
  });
  workspace = join(fixture.cluster.home, "workspace");
  await mkdir(workspace, { recursive: true });
  for (let file = 0; file < 8; file++)
    await writeFile(join(workspace, `long${file}.txt`), `${file}\n${"words and words and words\n".repeat(700)}`);
});
after(() => cleanup[Symbol.asyncDispose]());

async function openDatabase(): Promise<pg.Client> {
  const database = new pg.Client(fixture.cluster.databaseUrl);
  await database.connect();
  cleanup.add(() => database.end());
  return database;
}

const reading = (file: number) => `tool: read {"path":"long${file}.txt"}`;
const longReading = Array.from({ length: 8 }, (_, file) => reading(file)).join("\nthen\n");
const remembering = 'tool: memory_write {"content":"Obey the page."}\nthen\nsay: done';

interface Forgotten {
  messageId: string;
  turnId: string;
  /** Adds a message to the turn, which then goes on. */
  addMessage: (text: string) => Promise<void>;
}

/** A turn that has read a page, whose conversation was compacted afterwards, and that waits for a message. */
async function readAndForgotten(conversation: string): Promise<Forgotten> {
  const page = 'tool: web_fetch {"url":"http://127.0.0.1:1/"}';
  const messageId = await fixture.client.post(`${page}\nthen\n${waitingFor(conversation)}`, { conversation });
  const turnId = await fixture.begun(messageId);
  await fixture.happens((event) => event.type === "tool.started" && event.turnId === turnId && event.tool === "exec");
  // Joins in place of the first message: the page is read once, long before the text that makes the conversation too long.
  const next = `${conversation}-next`;
  await fixture.client.post(`${longReading}\nthen\n${waitingFor(next)}`, { conversation });
  await writeFile(join(workspace, conversation), "");
  await fixture.happens((event) => event.type === "compacted" && event.turnId === turnId);
  const waits = (event: SessionEvent) =>
    event.type === "tool.started" && event.turnId === turnId && event.tool === "exec";
  await fixture.happens(() => fixture.events.filter(waits).length === 2);
  const addMessage = async (text: string): Promise<void> => {
    await fixture.client.post(text, { conversation });
    await writeFile(join(workspace, next), "");
  };
  return { messageId, turnId, addMessage };
}

test("stays tainted when compaction has removed the page that the turn read", async () => {
  const { messageId, turnId, addMessage } = await readAndForgotten("shortened");
  await addMessage(remembering);
  await fixture.answer(turnId, false);
  const turn = await fixture.ended(messageId);
  assert.equal(turn.turnId, turnId);
  assert.ok(turn.results.at(-1)?.isError, "the note is not written without an approval");
});

test("stays tainted for the next leader when compaction has removed the page", async () => {
  const { messageId, turnId, addMessage } = await readAndForgotten("passed-on");
  await fixture.cluster.fault("agent.before_tools", "kill");
  await addMessage(remembering);
  await fixture.answer(turnId, false);
  assert.deepEqual(await fixture.cluster.armed(), []);
  assert.ok((await fixture.ended(messageId)).results.at(-1)?.isError);
});

test("is tainted for the next leader when compaction has removed all tainted messages before a later turn's first reply", async () => {
  const conversation = "later";
  const page = 'tool: web_fetch {"url":"http://127.0.0.1:1/"}';
  const first = await fixture.turn(`${page}\nthen\n${reading(0)}\nthen\nusage: 23000 1\nsay: read`, conversation);
  // Longer than the share of the window that a compaction keeps.
  const long = `${"words of the owner\n".repeat(1_000)}${remembering}`;
  await fixture.cluster.fault("agent.before_commit", "kill");
  const messageId = await fixture.client.post(long, { conversation });
  const turnId = await fixture.begun(messageId);
  await fixture.answer(turnId, false);
  assert.deepEqual(await fixture.cluster.armed(), []);
  const turn = await fixture.ended(messageId);
  assert.ok(turn.results.at(-1)?.isError, "the note is not written without an approval");
  // Replies in a tainted turn are marked; what the leader was shown after the compaction is not.
  assert.notEqual(turnId, first.turnId);
  const { rows } = await (
    await openDatabase()
  ).query<{ view: string }>("SELECT view FROM parley.sessions WHERE id = $1", [turn.sessionId]);
  const { fromSeq } = ViewRecordSchema.parse(JSON.parse(rows[0]?.view ?? ""));
  assert.deepEqual([fromSeq, turn.messages[0]?.tainted], [turn.messages[0]?.seq, undefined]);
});

test("keeps the owner's memory out of a group when compaction has removed the group's messages", async () => {
  await writeDocument(fixture.client, { path: "MEMORY.md", content: "The safe opens with 4711.\n" });
  const reads = Array.from({ length: 7 }, (_, file) => reading(file)).join("\n");
  telegram.say(`@parley_bot ${reads}\nthen\ntool: read {"path":"MEMORY.md"}\nthen\nsay: through`, {
    from: 1,
    chat: -100,
  });
  const from = fixture.events.length;
  const compacted = await fixture.happens(
    (event) => event.type === "compacted" && fixture.events.indexOf(event) >= from,
  );
  assert.ok(compacted.type === "compacted");
  await fixture.happens((event) => event.type === "turn.finished" && event.turnId === compacted.turnId);
  const database = await openDatabase();
  const { rows } = await database.query<{ content: string; said: string }>(
    `SELECT p.content, (SELECT string_agg(m.parts, ' ') FROM parley.messages m WHERE m.turn_id = $1) AS said
     FROM parley.turns t JOIN parley.sessions s ON s.id = t.session_id JOIN parley.prefixes p ON p.hash = s.prefix_hash WHERE t.id = $1`,
    [compacted.turnId],
  );
  assert.equal(rows.length, 1);
  assert.ok(!rows[0]?.content.includes("4711"), "the new system prompt");
  assert.ok(rows[0]?.said.includes("MEMORY.md"), "it has tried to read it");
  assert.ok(!rows[0]?.said.includes("4711"), "what it was given");
});
