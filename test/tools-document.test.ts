// docs/tools.md, and its guarantees for every tool of every service.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { builtInToolNames, matchesNamePattern, unmatchedHooks, type HookEvent } from "@parley/contracts";
import fc from "fast-check";
import { toolsDocument } from "../infra/docs/tools-document.ts";
import { toolParts } from "../infra/docs/tools.ts";
import { describedTools as agentTools } from "../services/agent-core/src/docs/described-tools.ts";
import { describedTools as runnerTools } from "../services/tool-runner/src/docs/described-tools.ts";

import { matchesHook, appliesToOutput } from "../services/agent-core/src/hooks/matcher.ts";

const tools = [...runnerTools(), ...agentTools()];

test("matches the definitions of the tools in docs/tools.md", () => {
  const written = readFileSync(new URL("../docs/tools.md", import.meta.url), "utf8");
  assert.equal(written, toolsDocument(toolParts()), "stale: run npm run docs");
});

test("contains every tool of both services once, with an anchor", () => {
  const document = toolsDocument(toolParts());
  for (const name of ["read", "exec", "web_search", "message", "cron", "memory_search", "speak", "todo", "tool_search"])
    assert.ok(document.includes(`\n## ${name}\n`), name);
  for (const { descriptor } of tools) {
    assert.equal(document.split(`\n## ${descriptor.name}\n`).length, 2, descriptor.name);
    assert.ok(document.includes(`](#${descriptor.name})`), descriptor.name);
  }
});

test("has one to three examples for every tool, which the tool's schema accepts", () => {
  for (const { descriptor, args } of tools) {
    const { name, examples = [] } = descriptor;
    assert.ok(examples.length >= 1 && examples.length <= 3, `${name} has ${examples.length} examples`);
    for (const example of examples) {
      assert.ok(args !== undefined, name);
      const { error } = args.safeParse(example);
      assert.equal(error, undefined, `${name} refuses ${JSON.stringify(example)}`);
    }
  }
});

test("describes the type and meaning of every argument", () => {
  const rows = toolsDocument(toolParts())
    .split("\n")
    .filter((line) => /^\| `\w+` \|/.test(line));
  assert.ok(rows.length > 80);
  for (const row of rows) {
    assert.doesNotMatch(row, /\|\s*\|$/, row);
    assert.doesNotMatch(row, /^\| `\w+` \|\s*\|/, row);
  }
});

/** Tools that exist only where MCP servers are configured; the servers' settings describe them. */
const mcpTools = ["mcp_resources", "ListMcpResources", "mcp_read", "ReadMcpResource", "mcp_authorize"];
const toolEvents = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"] as const;

// design: 001.15
test("lists exactly the names and aliases of the catalogs as built-in tool names", () => {
  const names = tools.flatMap(({ descriptor }) => [descriptor.name, ...descriptor.aliases]);
  assert.deepEqual([...builtInToolNames].sort(), [...names, ...mcpTools].sort());
});

test("runs a hook for every tool event when its matcher is any name of the tool", () => {
  for (const { descriptor } of tools) {
    const names = [descriptor.name, ...descriptor.aliases];
    for (const matcher of names) {
      for (const event of toolEvents) assert.ok(matchesHook({ event, matcher }, event, names), `${event} ${matcher}`);
      for (const event of ["PostToolUse", "PostToolUseFailure"] as const)
        assert.ok(appliesToOutput([{ event, matcher: `nothing|${matcher}` }], names), matcher);
      assert.deepEqual(unmatchedHooks([{ event: "PreToolUse", matcher }]), []);
    }
  }
});

test("reports a matcher exactly when it can match no tool", () => {
  const name = fc.oneof(
    fc.constantFrom(...builtInToolNames),
    fc.stringMatching(/^[A-Za-z_*]{1,12}$/),
    fc.stringMatching(/^mcp__[a-z_]{1,8}$/),
  );
  fc.assert(
    fc.property(name, fc.constantFrom<HookEvent>(...toolEvents), (matcher, event) => {
      const fits = builtInToolNames.some((each) => matchesNamePattern(matcher, each));
      const mcp = matcher.startsWith("mcp__") || /^(?:m|mc|mcp|mcp_)?\*/.test(matcher);
      assert.equal(unmatchedHooks([{ event, matcher }]).length, fits || mcp ? 0 : 1, matcher);
    }),
  );
  assert.deepEqual(unmatchedHooks([{ event: "Stop", matcher: "end_turn" }]), []);
});
