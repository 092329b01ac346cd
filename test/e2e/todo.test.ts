// The agent's to-do list: written by a tool, visible to people, kept after a compaction and a crash.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { z } from "zod";
import { startClusterFixture, type ClusterFixture } from "./presets/support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: ["agent-core"],
    model: true,
    replicas: { "agent-core": 2 },
    settings: '[session]\npolicy = "per_conversation"\n[compaction]\nkeep_last = 2\n',
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const Answer = z.object({ text: z.string() });
async function command(conversation: string, text: string): Promise<string> {
  const body = JSON.stringify({ conversation, text });
  const response = await fixture.client.fetch("/api/messages", { method: "POST", body });
  return Answer.parse(await response.json()).text;
}

const writing = (name: string, ...todos: [content: string, status: string, activeForm?: string][]) =>
  `tool: ${name} ${JSON.stringify({
    todos: todos.map(([content, status, activeForm]) => ({
      content,
      status,
      ...(activeForm === undefined ? {} : { activeForm }),
    })),
  })}`;

// design: 003.17
test("replaces the list under each name of the tool, and shows it by /todo and in the session", async () => {
  const turn = await fixture.turn(
    [
      writing("todo", ["Buy tea", "in_progress", "Buying tea"], ["Boil water", "pending"]),
      writing(
        "TodoWrite",
        ["Buy tea", "completed"],
        ["Boil water", "in_progress", "Boiling water"],
        ["Pour", "pending"],
      ),
      "say: at it",
    ].join("\nthen\n"),
    "tea",
  );
  assert.equal(turn.results[1]?.content, "[x] Buy tea\n[>] Boiling water\n[ ] Pour");
  assert.equal(await command("tea", "/todo"), "1 of 3 done:\n[x] Buy tea\n[>] Boiling water\n[ ] Pour");
  assert.deepEqual((await fixture.session("http:default:tea")).todos?.at(-1), { content: "Pour", status: "pending" });
  assert.match(await command("other", "/todo"), /^The todo list is empty/);
});

test("refuses an invalid list with the reason and keeps the previous one", async () => {
  await fixture.turn(`${writing("todo", ["One", "pending"])}\nthen\nsay: ok`, "wrong");
  const { results } = await fixture.turn(`${writing("todo_write", ["Two", "half done"])}\nthen\nsay: ok`, "wrong");
  assert.equal(results[0]?.isError, true);
  assert.match(results[0]?.content ?? "", /Invalid arguments for todo_write: todos\.0\.status/);
  assert.equal(await command("wrong", "/todo"), "0 of 1 done:\n[ ] One");
});

test("shows the list after the summary when a compaction and a leader's death have happened", async () => {
  const { sessionId } = await fixture.turn(
    `${writing("todo", ["Read the letter", "completed"], ["Answer it", "pending"])}\nthen\nsay: noted`,
    "letter",
  );
  await fixture.turn(`say: I see\n${"a long letter ".repeat(2_000)}`, "letter");
  await fixture.turn("say: yes", "letter");
  const compacted = await fixture.client.fetch(`/api/sessions/${sessionId}/compact`, { method: "POST", body: "{}" });
  assert.match(await compacted.text(), /"outcome":"compacted"/);
  await fixture.cluster.kill("agent-core", 1, "SIGKILL");
  await fixture.cluster.kill("agent-core", 2, "SIGKILL");
  await fixture.turn("say: going on", "letter");
  const [first = ""] = fixture.lastRequest().messages;
  assert.match(first, /\[CONTEXT SUMMARY\]/);
  assert.match(first, /\[TO DO\] Your current to-do list:\n\[x\] Read the letter\n\[ \] Answer it/);
  assert.ok(!fixture.lastRequest().messages.join("").includes("call(todo"));
  assert.equal(await command("letter", "/todo"), "1 of 2 done:\n[x] Read the letter\n[ ] Answer it");
});

test("omits the list after a compaction when all items are completed", async () => {
  const { sessionId } = await fixture.turn(`${writing("todo", ["Sleep", "completed"])}\nthen\nsay: noted`, "done");
  await fixture.turn(`say: I see\n${"a long night ".repeat(2_000)}`, "done");
  await fixture.turn("say: yes", "done");
  await fixture.client.fetch(`/api/sessions/${sessionId}/compact`, { method: "POST", body: "{}" });
  await fixture.turn("say: good morning", "done");
  assert.match(fixture.lastRequest().messages[0] ?? "", /\[CONTEXT SUMMARY\]/);
  assert.ok(!fixture.lastRequest().messages.join("").includes("[TO DO]"));
  assert.deepEqual(fixture.cluster.strict?.refusals, []);
});
