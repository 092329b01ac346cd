// Consolidation in a whole cluster, with a model that has OpenAI's wire format and whose answers the test writes. Messages and
// notes are added to MEMORY.md while the agent is idle: once, also when a process dies, and never before a person's turn.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { z } from "zod";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;
let model: Awaited<ReturnType<typeof startModel>>;

before(async () => {
  model = await startModel();
  cluster = await startTestCluster(cleanup, {
    processes: ["agent-core", "store"],
    replicas: { "agent-core": 2 },
    settings: `
[agent]
model = "rehearsal"
[session]
policy = "per_conversation"
[memory.consolidation]
idle_minutes = 0.02
model = "openai:tidy"
max_calls_per_day = 100
[models.known.tidy]
price = { input = 1, output = 10 }
`,
    env: { "agent-core": { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${model.url}/v1` } },
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

const Asked = z.object({
  model: z.literal("tidy"),
  messages: z.array(z.object({ role: z.string(), content: z.string() })),
  tools: z.array(z.object({ function: z.object({ name: z.literal("memory_update") }) })).length(1),
});

interface Call {
  /** The text that the model received. */
  shown: string;
  /** Resolves when the client has cancelled the request. */
  gone: Promise<unknown>;
  answer(update: object): void;
}

/** Each call waits until the test takes it and answers. */
async function startModel() {
  const calls: Call[] = [];
  let came = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    void (async () => {
      const shown = Asked.parse(await json(request)).messages.at(-1)?.content ?? "";
      calls.push({ shown, gone: once(response, "close"), answer: (update) => reply(response, update) });
      came.resolve();
    })();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async called(): Promise<Call> {
      for (;;) {
        const call = calls.shift();
        if (call !== undefined) return call;
        came = Promise.withResolvers<void>();
        await came.promise;
      }
    },
  };
}

function reply(response: ServerResponse, update: object): void {
  const call = {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name: "memory_update", arguments: JSON.stringify(update) },
  };
  const chunks = [
    { choices: [{ index: 0, delta: { role: "assistant", tool_calls: [call] }, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
    { choices: [], usage: { prompt_tokens: 1_000, completion_tokens: 100 } },
  ];
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of chunks) response.write(`data: ${JSON.stringify({ model: "tidy", ...chunk })}\n\n`);
  response.end("data: [DONE]\n\n");
}

/** Sends a message in a conversation of its own; returns the session once the turn has ended. */
async function say(text: string): Promise<string> {
  const { sessionId } = await client.settled(await client.post(text, { conversation: text }));
  return sessionId;
}

const Document = z.object({ document: z.object({ content: z.string() }) });

/** Empty when the document does not exist. */
async function memory(): Promise<string> {
  const response = await client.fetch("/api/documents/content?path=MEMORY.md");
  return response.status === 404 ? "" : Document.parse(await response.json()).document.content;
}

/** MEMORY.md once it contains a text. */
async function remembered(text: string): Promise<string> {
  return pollUntil(async () => {
    const content = await memory();
    return content.includes(text) && content;
  }, `"${text}" in MEMORY.md`);
}

/** An edit that adds a line whose source is the first listed message with the text `said`. */
function adding(call: Call, said: string, text: string): { add: object[] } {
  const [before = ""] = call.shown.split(said);
  const heading = [...before.matchAll(/^N(\d+), /gm)].at(-1)?.[1];
  const line = [...before.matchAll(/^ *(\d+)\t/gm)].at(-1)?.[1];
  return { add: [{ after: 0, text, sources: [`N${heading}:${line}`] }] };
}

test("adds messages to MEMORY.md with their source, and records the cost, when idle", async () => {
  const sessionId = await say("I have moved to Lisbon.");
  const call = await model.called();
  assert.match(call.shown, /There is no MEMORY\.md yet[\s\S]*I have moved to Lisbon\./);
  assert.doesNotMatch(call.shown, /You said:/, "what the agent answers is no material");
  call.answer(adding(call, "I have moved to Lisbon.", "- Lives in Lisbon"));
  const content = await remembered("Lisbon");
  assert.match(content, new RegExp(`^- Lives in Lisbon \\(sessions/${sessionId} message \\d+\\)\\n$`));

  await say("My sister is Ana.");
  const next = await model.called();
  assert.doesNotMatch(next.shown, /I have moved/, "what was taken in does not come again");
  assert.match(next.shown, /MEMORY\.md \(M\)[\s\S]*1\t- Lives in Lisbon[\s\S]*My sister is Ana\./);
  next.answer(adding(next, "My sister is Ana.", "- Has a sister, Ana"));
  await remembered("Ana");
  const Usage = z.object({
    rows: z.array(z.object({ model: z.string(), calls: z.number(), cost: z.object({ micros: z.number() }) })),
  });
  const { rows } = Usage.parse(await (await client.fetch("/api/usage")).json());
  assert.deepEqual(
    rows.filter((row) => row.model === "tidy").map(({ calls, cost }) => [calls, cost.micros]),
    [[2, 2 * (1_000 + 1_000)]],
  );
  const told = cluster.lines.filter((line) => line.includes("memory consolidated"));
  assert.ok(
    told.some((line) => line.includes(sessionId) && line.includes('"costMicros":2000')),
    "an operator sees it",
  );
});

test("cancels the call immediately when a person writes, and retries when idle again", async () => {
  await say("The boiler is serviced each May.");
  const call = await model.called();
  await Promise.all([call.gone, say("The gate code changes on Monday.")]);
  const next = await model.called();
  assert.match(next.shown, /The boiler is serviced each May\.[\s\S]*The gate code changes on Monday\./);
  next.answer(adding(next, "The boiler", "- The boiler is serviced each May"));
  await remembered("boiler");
});

test("keeps a person's edit of MEMORY.md and retries when both edit at once", async () => {
  await say("The piano is tuned in spring.");
  const call = await model.called();
  const body = JSON.stringify({ path: "MEMORY.md", content: "# Mine\n" });
  assert.equal((await client.fetch("/api/documents/put", { method: "POST", body })).status, 200);
  call.answer(adding(call, "The piano", "- LOST"));
  const next = await model.called();
  assert.match(next.shown, /1\t# Mine\n[\s\S]*The piano is tuned in spring\./);
  next.answer({ ...adding(next, "The piano", "- The piano is tuned in spring"), remove: [] });
  const content = await remembered("piano");
  assert.match(content, /^- The piano is tuned in spring \(.*\)\n# Mine\n$/);
});

test("loses nothing when the leader dies before the commit, nor repeats after the store dies", async () => {
  await say("The canary is called Pip.");
  const call = await model.called();
  await cluster.fault("agent.before_consolidate", "kill");
  call.answer(adding(call, "The canary", "- The canary is called Pip"));
  const again = await model.called();
  assert.match(again.shown, /The canary is called Pip\./, "the next leader asks again");
  assert.doesNotMatch(await memory(), /canary/);
  await cluster.fault("store.after_memory_consolidate", "kill");
  again.answer(adding(again, "The canary", "- The canary is called Pip"));
  await remembered("canary");

  await say("The parrot is called Flint.");
  const next = await model.called();
  assert.doesNotMatch(next.shown, /N\d+[\s\S]*canary/);
  next.answer(adding(next, "The parrot", "- The parrot is called Flint"));
  const content = await remembered("parrot");
  assert.equal(content.match(/canary/g)?.length, 1);
  assert.deepEqual(await cluster.armed(), []);
});
