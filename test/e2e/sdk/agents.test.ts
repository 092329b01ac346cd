// The option `agents` of the Claude Agent SDK: sub-agents that a program defines for the session of its run.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createSdkMcpServer, tool, type Options } from "@anthropic-ai/claude-agent-sdk";
import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";
import pg from "pg";
import { z } from "zod";
import { sdkClient, toolResults, type SdkClient } from "./support/client.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let sdk: SdkClient;
let database: pg.Client;

before(async () => {
  cluster = await startTestCluster(cleanup, { processes: [] });
  sdk = sdkClient(cluster);
  database = new pg.Client(cluster.databaseUrl);
  await database.connect();
  cleanup.add(() => database.end());
});
after(() => cleanup[Symbol.asyncDispose]());

const definition = { description: "Adds up", prompt: "You count beans for the shop." };
/** A message that gives the sub-agent a task, which is a script too. */
const delegate = (task: string, options: object = { subagent_type: "clerk" }) =>
  `tool: Agent ${JSON.stringify({ ...options, prompt: task })}\nthen\nsay: over`;

/** What the model was sent before the conversation of each sub-agent of a session, by name of the sub-agent. */
async function promptsOf(sessionId: string): Promise<Map<string, string>> {
  const { rows } = await database.query<{ id: string; profile: string; content: string }>(
    `SELECT s.profile, p.content FROM parley.sessions s JOIN parley.prefixes p ON p.hash = s.prefix_hash WHERE s.parent_id = $1`,
    [sessionId],
  );
  return new Map(rows.map(({ profile, content }) => [profile, content]));
}

async function childOf(sessionId: string): Promise<string> {
  const query = "SELECT id::text FROM parley.sessions WHERE parent_id = $1";
  const { rows } = await database.query<{ id: string }>(query, [sessionId]);
  assert.equal(rows.length, 1);
  return rows[0]?.id ?? "";
}

test("starts a sub-agent that the program defines, which answers with its own prompt", async () => {
  const clerk = { ...definition, model: "inherit", effort: "low", maxTurns: 5 } as const;
  const run = await sdk.run(delegate("say: twelve beans"), { agents: { clerk } });
  assert.match(toolResults(run)[0] ?? "", /^twelve beans/);
  assert.equal(run.result.subtype, "success");
  const { modelUsage, usage } = run.result;
  assert.ok((modelUsage["rehearsal"]?.inputTokens ?? 0) > usage.input_tokens, "with the calls of the sub-agent");
  const [init] = run.system("init");
  assert.ok(init?.subtype === "init" && init.agents?.includes("clerk"));
  const prompts = await promptsOf(run.result.session_id);
  assert.deepEqual([...prompts.keys()], ["clerk"]);
  assert.match(prompts.get("clerk") ?? "", /You count beans for the shop\./);
});

test("gives a sub-agent the listed tools, those of the program's servers too, and no others", async () => {
  const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
    content: [{ type: "text", text: `the sum is ${a + b}` }],
  }));
  const options: Options = {
    mcpServers: { shop: createSdkMcpServer({ name: "shop", tools: [add] }) },
    canUseTool: async (_tool, updatedInput) => ({ behavior: "allow", updatedInput }),
  };
  const task = [
    'tool: mcp__shop__add {"a":1,"b":2}',
    "tool: ls {}",
    'tool: write {"path":"no.txt","content":"no"}',
    "say: added",
  ].join("\nthen\n");
  const listed = { ...definition, tools: ["LS", "mcp__shop"] };
  const run = await sdk.run(delegate(task), { ...options, agents: { clerk: listed } });
  const [sum, files = "", write = "", report = ""] = toolResults(run);
  assert.equal(sum, "the sum is 3");
  assert.doesNotMatch(files, /Tool not found/);
  assert.match(write, /^Tool not found: write/);
  assert.match(report, /^added/);
  const denied = { ...definition, disallowedTools: ["mcp__shop", "Write"] };
  const other = await sdk.run(delegate(task), { ...options, agents: { clerk: denied } });
  const [refused = "", , notWritten = ""] = toolResults(other);
  assert.match(refused, /^Tool not found: mcp__shop__add/);
  assert.match(notWritten, /^Tool not found: write/);
});

test("limits a sub-agent to its model calls", async () => {
  const task = ["tool: ls {}", "tool: ls {}", "say: never"].join("\nthen\n");
  const run = await sdk.run(delegate(task), { agents: { clerk: { ...definition, maxTurns: 2 } } });
  const [, , report = "", ...more] = toolResults(run);
  assert.match(report, /did not finish \(max_turns\): .* 2 steps/);
  assert.deepEqual(more, []);
});

test("refuses a name that nothing defines, and names those that are defined", async () => {
  const run = await sdk.run(delegate("say: never", { subagent_type: "cook" }), { agents: { clerk: definition } });
  assert.match(toolResults(run)[0] ?? "", /there is no profile "cook"\. Available: reader, clerk\./);
});

test("forgets the definitions when the run ends", async () => {
  const run = await sdk.run(delegate("say: twelve beans"), { agents: { clerk: definition } });
  const resume = run.result.session_id;
  const child = await childOf(resume);
  const without = await sdk.run(delegate("say: never"), { resume });
  assert.match(toolResults(without)[0] ?? "", /there is no profile "clerk"\. Available: reader\./);
  const goOn = delegate("say: again", { resume: child });
  assert.match(toolResults(await sdk.run(goOn, { resume }))[0] ?? "", /ended with the run of its program/);
  const other = { ...definition, prompt: "You are another clerk." };
  const redefined = await sdk.run(goOn, { resume, agents: { clerk: other } });
  assert.match(toolResults(redefined)[0] ?? "", /ended with the run of its program/);
  const same = await sdk.run(goOn, { resume, agents: { clerk: definition } });
  assert.match(toolResults(same)[0] ?? "", /^again/);
});

test("refuses a definition that cannot be honoured, with the reason", async () => {
  const refusal = async (clerk: object) =>
    (await sdk.run("say: never", { agents: { clerk: { ...definition, ...clerk } } })).failure?.message ?? "";
  assert.match(await refusal({ skills: ["pdf"] }), /agents: .*skills/);
  assert.match(await refusal({ tools: ["Bash(ls *)"] }), /agents: "Bash\(ls \*\)" is not the name of a tool/);
  assert.match(await refusal({ model: "nobody:knows" }), /nobody:knows/);
});
