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
  tool("sessions_history", { summary: "Read the messages of a conversation.", description: "The newest messages." }),
  tool("save_attachment", { summary: "Save an attachment as a file.", description: "Writes it to the workspace." }),
];
const search = toolSearchTool({
  descriptors: tools,
  find: (name) => tools.find((each) => each.name === name || each.aliases.includes(name)),
});

/** These tools use only the name of the context. */
const run = (which: LocalTool, input: object) =>
  which.run(JSON.stringify(input), { name: which.descriptor.name } as LocalContext);

async function found(query: string, limit?: number): Promise<string[]> {
  const outcome = await run(search, { query, ...(limit === undefined ? {} : { limit }) });
  assert.ok("content" in outcome);
  return [...outcome.content.matchAll(/^\{"name":"(\w+)"/gm)].map(([, name = ""]) => name);
}

describe("tool_search", () => {
  test("finds a tool by its name, purpose and argument names", async () => {
    assert.equal((await found("cron"))[0], "cron");
    assert.equal((await found("open a github issue"))[0], "mcp__github__create_issue");
    assert.equal((await found("read earlier conversation"))[0], "sessions_history");
    assert.equal((await found("time zone"))[0], "cron");
    assert.equal((await found("labels"))[0], "mcp__github__create_issue");
    assert.equal((await found("atachment"))[0], "save_attachment");
  });

  test("returns full definitions and explains how to call the tools", async () => {
    const outcome = await run(search, { query: "cron" });
    assert.ok("content" in outcome);
    assert.match(outcome.content, /"input_schema":\{"type":"object","properties":\{"schedule":/);
    assert.match(outcome.content, /Call a tool with tool_call/);
  });

  test("returns at most `limit` tools", async () => {
    assert.equal((await found("a file, an issue, a conversation, a job", 2)).length, 2);
  });

  test("returns each tool selected by name once and suggests a similar name for an unknown one", async () => {
    assert.deepEqual(await found("select: save_attachment, CronCreate,cron"), ["save_attachment", "cron"]);
    const outcome = await run(search, { query: "select:sesions_history" });
    assert.deepEqual(outcome, {
      status: "failed",
      content: "There is no tool sesions_history; did you mean sessions_history?",
    });
    assert.deepEqual(await found("select: nothing, cron"), ["cron"]);
  });

  test("reports when no tool matches, and rejects an empty query", async () => {
    const outcome = await run(search, { query: "xylophone" });
    assert.ok("content" in outcome && outcome.status === "done");
    assert.match(outcome.content, /No tool matches "xylophone"/);
    assert.equal((await run(search, { query: " " })).status, "failed");
  });

  test("omits definitions beyond the size limit and lists their names", async () => {
    const large = Array.from({ length: 4 }, (_, index) =>
      tool(`large_${index}`, { summary: "Huge.", description: "x".repeat(14_000) }),
    );
    const find = (name: string): ToolDescriptor | undefined => large.find((each) => each.name === name);
    const outcome = await run(toolSearchTool({ descriptors: large, find }), { query: "huge" });
    assert.ok("content" in outcome);
    assert.ok(outcome.content.length < 31_000);
    assert.match(outcome.content, /Omitted for lack of space: large_2, large_3\. Get them with select:/);
  });
});

test("tool_call fails when its arguments contain no valid call", async () => {
  for (const input of [{}, { tool: "a b", input: {} }]) {
    const outcome = await run(callTool, input);
    assert.equal(outcome.status, "failed");
  }
});
