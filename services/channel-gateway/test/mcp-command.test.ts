// How a prompt of an MCP server is typed, without a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mcpAnswer, promptCommand, wordsOf } from "../src/commands/mcp.ts";

test("words behind a prompt are parted by spaces; quotes hold them together", () => {
  assert.deepEqual(wordsOf('"New York"  NY'), ["New York", "NY"]);
  assert.deepEqual(wordsOf(`city="New York" state='N Y'`), ["city=New York", "state=N Y"]);
  assert.deepEqual(wordsOf(`""`), [""]);
  assert.deepEqual(wordsOf("  "), []);
  assert.deepEqual(wordsOf('it"s'), ["it", "s"]);
});

test("a prompt's command names server and prompt; what only looks like one is none", () => {
  assert.match(promptCommand("/mcp__git_hub__review__all")?.summary ?? "", /the prompt review__all of git_hub/);
  for (const name of ["/mcp", "/mcp__x", "/mcp____x", "/mcpx__a__b"])
    assert.equal(promptCommand(name), undefined, name);
});

test("without servers it is said how to have one, without prompts which servers are not there", () => {
  assert.match(mcpAnswer(undefined, [], []), /Add one to parley\.toml/);
  assert.match(mcpAnswer("prompts", [], []), /Add one to parley\.toml/);
  const away = { server: "files", state: "broken" as const, tools: 0, problem: "no program" };
  const there = { server: "notes", state: "ready" as const, tools: 2, problem: null };
  assert.equal(mcpAnswer("prompts", [], [away, there]), "There are no prompts.\nfiles: broken, 0 tools (no program)");
  assert.match(mcpAnswer(undefined, [], [away, there]), /^files: broken.*\nnotes: ready, 2 tools\n/);
});
