import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ToolDescriptor } from "@parley/contracts";
import { callTool, toolSearchTool } from "../../src/tools/tool-search.ts";
import type { LocalContext, LocalTool } from "../../src/tools/local-tool.ts";
import { tool } from "../turn/support.ts";

const tools = [
  tool("cron", {
    aliases: ["CronCreate"],
    summary: "Do something later, or again and again.",
    description: "Make, list, change and remove jobs that run at a time.",
    inputSchema: { type: "object", properties: { schedule: {}, time_zone: {} } },
  }),
  tool("mcp__github__create_issue", {
    summary: "Open an issue in a repository.",
    description: "Files a new ticket.",
    inputSchema: { type: "object", properties: { title: {}, labels: {} } },
  }),
  tool("sessions_history", { summary: "Read what was said in a conversation.", description: "The newest messages." }),
  tool("save_attachment", { summary: "Save an attachment as a file.", description: "Writes it to the workspace." }),
];
const search = toolSearchTool({
  descriptors: tools,
  find: (name) => tools.find((each) => each.name === name || each.aliases.includes(name)),
});

/** These tools ask nothing of what surrounds them. */
const run = (which: LocalTool, input: object) =>
  which.run(JSON.stringify(input), { name: which.descriptor.name } as LocalContext);

async function found(query: string, limit?: number): Promise<string[]> {
  const outcome = await run(search, { query, ...(limit === undefined ? {} : { limit }) });
  assert.ok("content" in outcome);
  return [...outcome.content.matchAll(/^\{"name":"(\w+)"/gm)].map(([, name = ""]) => name);
}

describe("tool_search", () => {
  test("finds a tool by its name, what it does, and what its arguments are called", async () => {
    assert.equal((await found("cron"))[0], "cron");
    assert.equal((await found("open a github issue"))[0], "mcp__github__create_issue");
    assert.equal((await found("read earlier conversation"))[0], "sessions_history");
    assert.equal((await found("time zone"))[0], "cron");
    assert.equal((await found("labels"))[0], "mcp__github__create_issue");
    assert.equal((await found("atachment"))[0], "save_attachment");
  });

  test("gives whole definitions, and says how to call", async () => {
    const outcome = await run(search, { query: "cron" });
    assert.ok("content" in outcome);
    assert.match(outcome.content, /"input_schema":\{"type":"object","properties":\{"schedule":/);
    assert.match(outcome.content, /Call it with tool_call/);
  });

  test("gives no more than it is asked for", async () => {
    assert.equal((await found("a file, an issue, a conversation, a job", 2)).length, 2);
  });

  test("gives exactly the tools that are selected by name, each once, and names a near one for what is not there", async () => {
    assert.deepEqual(await found("select: save_attachment, CronCreate,cron"), ["save_attachment", "cron"]);
    const outcome = await run(search, { query: "select:sesions_history" });
    assert.deepEqual(outcome, {
      status: "failed",
      content: "There is no tool sesions_history; there is sessions_history.",
    });
    assert.deepEqual(await found("select: nothing, cron"), ["cron"]);
  });

  test("says so when nothing fits, and refuses an empty query", async () => {
    const outcome = await run(search, { query: "xylophone" });
    assert.ok("content" in outcome && outcome.status === "done");
    assert.match(outcome.content, /No tool fits "xylophone"/);
    assert.equal((await run(search, { query: " " })).status, "failed");
  });

  test("leaves out definitions there is no room for, and names them", async () => {
    const large = Array.from({ length: 4 }, (_, index) =>
      tool(`large_${index}`, { summary: "Huge.", description: "x".repeat(14_000) }),
    );
    const find = (name: string): ToolDescriptor | undefined => large.find((each) => each.name === name);
    const outcome = await run(toolSearchTool({ descriptors: large, find }), { query: "huge" });
    assert.ok("content" in outcome);
    assert.ok(outcome.content.length < 31_000);
    assert.match(outcome.content, /no room for large_2, large_3: ask for them with select:/);
  });
});

test("tool_call with no call in it says what a call looks like", async () => {
  for (const input of [{}, { tool: "a b", input: {} }]) {
    const outcome = await run(callTool, input);
    assert.equal(outcome.status, "failed");
  }
});
