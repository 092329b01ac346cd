// Memory in a whole cluster: the agent writes and finds notes, receives matching notes automatically, and with an embedder finds
// paraphrases.
import assert from "node:assert/strict";
import { hash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let embedder: { url: string; answers: boolean };

before(async () => {
  embedder = await startEmbedder();
  cluster = await startTestCluster(cleanup, {
    processes: ["agent-core"],
    replicas: { "agent-core": 2 },
    settings: `
[session]
policy = "per_conversation"
[permissions]
allow = ["memory_write"]
[memory]
auto_recall = 2
[memory.embedder]
url = "${embedder.url}"
model = "topics"
timeout_seconds = 2
`,
  });
  client = apiClient([cluster.httpUrl], cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

const topics = [/\b(?:cat|feline|kitten)\b/i, /\b(?:car|automobile|sedan)\b/i];
const ownDimensions = 256;

/** Texts of the same topic are close; every other text has a direction of its own. */
function vectorOf(text: string): number[] {
  const own = hash("sha256", text, "buffer")[0];
  const known = topics.map((topic) => (topic.test(text) ? 1 : 0));
  return [...known, ...Array.from({ length: ownDimensions }, (_, index) => (index === own ? 0.1 : 0))];
}

/** An OpenAI-compatible server of these vectors. */
async function startEmbedder(): Promise<{ url: string; answers: boolean }> {
  const Asked = z.object({ model: z.literal("topics"), input: z.array(z.string()) });
  const self = { url: "", answers: true };
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      if (!self.answers) return response.writeHead(503).end();
      const data = Asked.parse(body).input.map((text, index) => ({
        index,
        embedding: vectorOf(text),
      }));
      return response.end(JSON.stringify({ data }));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const { port } = server.address() as AddressInfo;
  self.url = `http://127.0.0.1:${port}`;
  return self;
}

const Log = z.object({
  messages: z.array(
    z.object({
      seq: z.number(),
      role: z.string(),
      from: z.object({ role: z.string() }).optional(),
      parts: z.array(z.object({ type: z.string(), text: z.string().optional(), content: z.string().optional() })),
    }),
  ),
});
type Messages = z.infer<typeof Log>["messages"];

/** A turn in a conversation of its own, and the session's log after it. */
async function turn(script: string, conversation: string = randomUUID()): Promise<{ text: string; log: Messages }> {
  const { sessionId, text } = await client.settled(await client.post(script, { conversation }));
  const response = await client.fetch(`/api/sessions/${sessionId}/messages?after=0`);
  return { text: text ?? "", log: Log.parse(await response.json()).messages };
}

const results = (log: Messages) =>
  log.flatMap(({ parts }) => parts.flatMap((part) => (part.type === "tool_result" ? [part.content ?? ""] : [])));
const notes = (log: Messages) =>
  log
    .filter(({ role, from }) => role === "user" && from === undefined)
    .map(({ parts }) => parts.map(({ text }) => text ?? "").join(""));
const call = (tool: string, input: object) => `tool: ${tool} ${JSON.stringify(input)}`;

// design: 000.19, 001.17, 000.25b
test("finds, cites, reads and deletes a note that another conversation wrote", async () => {
  const written = await turn(call("memory_store", { content: "The sundial is in the walled yard." }));
  const [place] = results(written.log);
  assert.match(place ?? "", /^Written to MEMORY\.md, line \d+\.$/);
  const found = await turn(call("memory_recall", { query: "sundial" }));
  assert.match(results(found.log)[0] ?? "", /MEMORY\.md#L\d.*\n(?:> .*\n)*> - The sundial is in the walled yard\./);
  const read = await turn(call("memory_get", { path: "MEMORY.md" }));
  assert.match(results(read.log)[0] ?? "", /\d+\t- The sundial is in the walled yard\./);
  const gone = await turn(call("memory_forget", { path: "MEMORY.md", text: "sundial" }));
  assert.match(results(gone.log)[0] ?? "", /Removed from MEMORY\.md:\n> - The sundial/);
  const missed = await turn(call("memory_get", { path: "MEMORY.md" }));
  assert.doesNotMatch(results(missed.log)[0] ?? "", /sundial/);
});

// design: 001.24b
test("adds matching notes after the person's message and leaves earlier messages unchanged", async () => {
  await turn(call("memory_write", { content: "The astrolabe is lent to Wilhelmina.", path: "memory/lent.md" }));
  const conversation = randomUUID();
  const first = await turn("Where is the astrolabe?", conversation);
  assert.match(first.text, /You said: Where is the astrolabe\?$/, "the note is not what the person said");
  const [note, ...more] = notes(first.log);
  assert.equal(more.length, 0);
  assert.match(
    note ?? "",
    /^\[Memory: [^\]]*\]\n\nmemory\/lent\.md#L\d.*\n(?:> .*\n)*> - The astrolabe is lent to Wilhelmina\./,
  );
  const second = await turn("xyzzy", conversation);
  assert.deepEqual(second.log.slice(0, first.log.length), first.log);
  assert.equal(notes(second.log).length, 1, "what fits nothing reminds of nothing");
  for (const path of ["memory/lens.md", "memory/brass.md"])
    await turn(call("memory_write", { content: `Another astrolabe is in ${path}.`, path }));
  const [best = ""] = notes((await turn("Where is the astrolabe now?", randomUUID())).log);
  assert.equal([...best.matchAll(/^memory\/\w+\.md#L/gm)].length, 2, "no more than `memory.auto_recall`");
});

test("adds notes once when the leader dies between the notes and the answer", async () => {
  await turn(call("memory_write", { content: "The theodolite is in the loft.", path: "memory/loft.md" }));
  await cluster.fault("agent.before_commit", "kill");
  const { log, text } = await turn("Where is the theodolite?");
  assert.match(text, /theodolite/);
  assert.deepEqual(await cluster.armed(), []);
  assert.equal(notes(log).length, 1);
});

test("marks notes that a turn wrote after reading the web, and taints turns that find them", async () => {
  const path = "memory/rumours.md";
  const written = await turn(
    [
      call("web_fetch", { url: "http://127.0.0.1:1/" }),
      "then",
      call("memory_write", { content: "The zeppelin company pays double.", path }),
    ].join("\n"),
  );
  assert.match(results(written.log)[1] ?? "", /marked as untrusted/);
  const found = await turn(
    [
      call("memory_search", { query: "zeppelin" }),
      "then",
      call("memory_write", { content: "Heard about it again.", path: "memory/again.md" }),
    ].join("\n"),
  );
  const [hits = "", again = ""] = results(found.log);
  assert.match(hits, /\[untrusted: .*\]\n(?:> .*\n)*> - The zeppelin company/);
  assert.match(again, /marked as untrusted/);
});

test("still taints turns that find an untrusted note when a person restores it", async () => {
  const path = "memory/hearsay.md";
  await turn(
    [
      call("web_fetch", { url: "http://127.0.0.1:1/" }),
      "then",
      call("memory_write", { content: "The dirigible company pays double.", path }),
    ].join("\n"),
  );
  const change = (act: string, body: object) =>
    client.fetch(`/api/documents/${act}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ path, ...body }),
    });
  assert.equal((await change("put", { content: "Nothing yet.\n" })).status, 200);
  const back = await change("restore", { version: 1, expectedVersion: 2 });
  assert.equal(back.status, 200);
  assert.match(await back.text(), /"author":"untrusted".*"restoredFrom":1/);
  assert.equal((await change("restore", { version: 2, expectedVersion: 2 })).status, 409);
  assert.equal((await change("restore", { version: 9 })).status, 404);
  const found = await turn(
    [
      call("memory_search", { query: "dirigible" }),
      "then",
      call("memory_write", { content: "Heard about it again.", path: "memory/again.md" }),
    ].join("\n"),
  );
  const [hits = "", again = ""] = results(found.log);
  assert.match(hits, /\[untrusted: .*\]\n(?:> .*\n)*> - The dirigible company/);
  assert.match(again, /marked as untrusted/);
});

// design: 000.25
test("finds paraphrases with an embedder, and falls back to full text when it is unavailable", async () => {
  await turn(call("memory_write", { content: "Her feline companion is called Moritz.", path: "memory/pets.md" }));
  await turn(call("memory_write", { content: "An old automobile rusts in the barn.", path: "memory/barn.md" }));
  const near = await turn(call("memory_search", { query: "kitten", max_results: 1 }));
  assert.match(results(near.log)[0] ?? "", /memory\/pets\.md/);
  embedder.answers = false;
  const words = await turn(call("memory_search", { query: "Moritz", max_results: 1 }));
  assert.match(results(words.log)[0] ?? "", /memory\/pets\.md/);
  const missed = await turn(call("memory_search", { query: "kitten" }));
  assert.match(results(missed.log)[0] ?? "", /No matching passage in memory/);
  assert.ok(cluster.lines.some((line) => line.includes("embedding failed: memory search uses text only")));
});
