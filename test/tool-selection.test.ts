// Whether a model can find the deferred tools: tool_search over the real definitions of both services, with queries as models write them.
// Which tool a model then chooses can only be shown with the model itself (`parley eval` with `tool_used`, docs/evals.md).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ParleySettingsSchema } from "@parley/contracts";
import { describedTools as agentTools } from "../services/agent-core/src/docs/described-tools.ts";
import type { LocalContext } from "../services/agent-core/src/tools/local-tool.ts";
import { isDeferrable, listDeferred } from "../services/agent-core/src/tools/deferred-tools.ts";
import { toolSearchTool } from "../services/agent-core/src/tools/tool-search.ts";
import { describedTools as runnerTools } from "../services/tool-runner/src/docs/described-tools.ts";

const descriptors = [...runnerTools(), ...agentTools()].map(({ descriptor }) => descriptor);
const deferred = isDeferrable(
  descriptors.filter(({ name }) => name !== "tool_search" && name !== "tool_call"),
  ParleySettingsSchema.parse({}).tools,
);
const search = toolSearchTool({
  descriptors: deferred,
  find: (name) => deferred.find((each) => each.name === name || each.aliases.includes(name)),
});

/** Queries by the tool that they are for. */
const queries: Readonly<Record<string, readonly string[]>> = {
  agents_list: ["list sub-agent profiles", "which profiles can a sub-agent have"],
  apply_patch: ["apply a patch to several files", "change many files at once"],
  attach: ["send a file to the user as an attachment", "attach a workspace file"],
  cron: ["set a reminder for tomorrow", "schedule a recurring job", "run something every day at 9"],
  exit_plan_mode: ["present plan for approval", "leave plan mode"],
  ls: ["list directory contents", "list files in a folder"],
  memory_forget: ["forget something", "remove an entry from memory"],
  memory_get: ["read a memory note", "get lines of MEMORY.md"],
  notebook_edit: ["edit a Jupyter notebook cell", "change an ipynb file"],
  process: ["control a background process", "stop a background command", "send input to a running process"],
  save_attachment: ["save an attachment to the workspace", "write a received attachment to a file"],
  sessions_history: ["read messages of another conversation", "conversation history"],
  sessions_list: ["list conversations", "list sessions"],
  sessions_send: ["write to another session", "send a message to another conversation"],
  sessions_status: ["conversation status and cost", "how many tokens has this conversation used"],
  sleep: ["wait for new input", "end the turn and wait"],
  speak: ["send a voice message", "text to speech"],
  subagents: ["list running sub-agents", "state of my sub-agents"],
  todo: ["keep a todo list", "track tasks"],
};

const find = async (query: string): Promise<string[]> => {
  const outcome = await search.run(JSON.stringify({ query }), { name: "tool_search" } as LocalContext);
  assert.ok("content" in outcome);
  return [...outcome.content.matchAll(/^\{"name":"(\w+)"/gm)].map(([, name = ""]) => name);
};

describe("the deferred tools of the default settings", () => {
  test("are those with queries below, and all are listed by name and summary", () => {
    assert.deepEqual(deferred.map(({ name }) => name).sort(), Object.keys(queries).sort());
    const listed = listDeferred(deferred);
    for (const { name, summary } of deferred)
      assert.ok(listed.includes(`- ${name}: ${summary.replace(/\.$/, "")}`), name);
  });

  test("are among the first three results of a query that describes the work", async () => {
    const missed: string[] = [];
    let first = 0;
    for (const [name, texts] of Object.entries(queries)) {
      for (const text of texts) {
        const names = await find(text);
        if (names[0] === name) first += 1;
        if (!names.slice(0, 3).includes(name)) missed.push(`${name}: "${text}" finds ${names.join(", ")}`);
      }
    }
    assert.deepEqual(missed, []);
    const total = Object.values(queries).flat().length;
    assert.ok(first / total >= 0.85, `${first} of ${total} queries have their tool as the first result`);
  });
});
