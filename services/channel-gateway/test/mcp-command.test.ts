// The parsing of MCP prompt commands and the texts about MCP servers, without a server.
import { ownerAccess } from "../src/http/api-access.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePrompt, splitArguments } from "../src/operations/mcp.ts";
import { ownerCaller } from "../src/http/owner-input.ts";
import { operations } from "../src/operations/registry.ts";
import { findForm, slashForms, slashInput, wordsIn } from "../src/operations/slash.ts";
import { promptsText, serversText, switchedText, toolsText } from "../src/operations/mcp-text.ts";

test("splits prompt arguments at spaces outside of quotes", () => {
  assert.deepEqual(splitArguments('"New York"  NY'), ["New York", "NY"]);
  assert.deepEqual(splitArguments(`city="New York" state='N Y'`), ["city=New York", "state=N Y"]);
  assert.deepEqual(splitArguments(`""`), [""]);
  assert.deepEqual(splitArguments("  "), []);
  assert.deepEqual(splitArguments('it"s'), ["it", "s"]);
});

test("accepts quotes around the arguments of /mcp", () => {
  const forms = slashForms(operations);
  const { speaker } = ownerCaller(ownerAccess, "API", "ref");
  const inputOf = (rest: string) => {
    const form = findForm(forms, "/mcp", wordsIn("/mcp", rest));
    assert.ok(form !== undefined);
    return slashInput(form, rest, speaker);
  };
  assert.deepEqual(inputOf(`off "notes" 'read all'`), { action: "off", server: "notes", tool: "read all" });
  assert.deepEqual(inputOf("tools notes"), { server: "notes" });
  assert.throws(() => inputOf('off "a b" c d'), /Unexpected argument: d/);
});

test("parses a prompt command into server and prompt and rejects similar names", () => {
  assert.deepEqual(parsePrompt("/mcp__git_hub__review__all"), { server: "git_hub", prompt: "review__all" });
  for (const name of ["/mcp", "/mcp__x", "/mcp____x", "/mcpx__a__b"]) assert.equal(parsePrompt(name), undefined, name);
});

const away = { server: "files", state: "broken" as const, tools: 0, problem: "no program", switched: null };
const there = { server: "notes", state: "ready" as const, tools: 2, problem: null, switched: null };
const switched = { server: "notes", on: true, hidden: [], restarts: 0, by: "Ada (irc 7)", at: "2026-01-01T00:00:00Z" };

test("explains how to add a server, and lists unready servers when there are no prompts", () => {
  assert.match(serversText([]), /Add one to parley\.toml/);
  assert.match(promptsText([], []), /Add one to parley\.toml/);
  assert.equal(promptsText([], [away, there]), "No prompts found.\nfiles: broken, 0 tools (no program)");
  assert.match(serversText([away, there]), /^files: broken.*\nnotes: ready, 2 tools\n/);
});

test("shows who switched a server or tool, and how to undo it", () => {
  const off = { ...there, state: "off" as const, tools: 0, switched: { ...switched, on: false } };
  assert.match(serversText([off]), /^notes: off, switched off by Ada \(irc 7\)\n/);
  const hiding = { ...there, switched: { ...switched, hidden: ["write"] } };
  assert.match(serversText([hiding]), /^notes: ready, 2 tools, 1 hidden\n/);
  const tools = [
    { tool: "read", name: "mcp__notes__read", hidden: false },
    { tool: "write", name: "mcp__notes__write", hidden: true },
  ];
  assert.equal(toolsText(hiding, tools), "notes: ready, 2 tools, 1 hidden\n- read\n- write (hidden)");
  const outcome = { server: "notes", tool: null, outcome: "done" as const, switch: switched };
  assert.match(switchedText("off", outcome), /until \/mcp on notes\./);
  assert.match(switchedText("off", { ...outcome, tool: "write" }), /until \/mcp on notes write\./);
  const shown = { ...outcome, tool: "write", switch: { ...switched, on: false } };
  assert.match(switchedText("on", shown), /write of notes is visible again.* server notes is off: \/mcp on notes\.$/);
  assert.match(switchedText("on", { ...outcome, outcome: "same" }), /is already on/);
});
