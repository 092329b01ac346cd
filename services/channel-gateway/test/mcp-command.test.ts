// How a prompt of an MCP server is typed, without a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { promptCommand, wordsOf } from "../src/commands/mcp.ts";

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
