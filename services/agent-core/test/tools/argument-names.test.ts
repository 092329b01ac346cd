// Normalization of argument names that other agent designs use.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { normalizeArguments } from "../../src/tools/normalize-arguments.ts";
import { parseCall } from "../../src/policy/parsed-call.ts";
import { decidePermission } from "../../src/policy/decide.ts";
import { compileRules } from "../../src/policy/rules.ts";
import { context, write } from "../permissions/support.ts";

const Values = z.record(z.string(), z.string());

// design: 004.9
describe("renames foreign argument names", () => {
  const calls: [tool: string, elsewhere: object, here: object][] = [
    ["read", { file_path: "a", limit: 3 }, { path: "a", limit: 3 }],
    ["write", { file_path: "a", content: "" }, { path: "a", content: "" }],
    ["edit", { file_path: "a", old_string: "b", new_string: "c" }, { path: "a", old_text: "b", new_text: "c" }],
    [
      "notebook_edit",
      { notebook_path: "a", cell_id: "b", new_source: "" },
      { path: "a", cell_id: "b", new_source: "" },
    ],
    [
      "grep",
      { pattern: "x", glob: "*.ts", output_mode: "count", "-i": true, "-C": 2, head_limit: 9 },
      { pattern: "x", include: "*.ts", mode: "count", ignore_case: true, context: 2, limit: 9 },
    ],
    ["grep", { pattern: "x", "-n": true }, { pattern: "x" }],
    ["Agent", { prompt: "x", description: "d", name: "bob" }, { prompt: "x", description: "d", label: "bob" }],
    ["web_fetch", { url: "u", prompt: "what does it say?" }, { url: "u" }],
    ["exec", { command: "ls", working_dir: "src" }, { command: "ls", workdir: "src" }],
    ["exec", { command: "ls", run_in_background: true }, { command: "ls", background: true }],
    ["exec", { command: "ls", description: "List files" }, { command: "ls" }],
    ["process", { action: "poll", process_id: "1@a" }, { action: "poll", id: "1@a" }],
    ["web_fetch", { url: "u", extractMode: "text", maxChars: 500 }, { url: "u", extract: "text", max_chars: 500 }],
    ["sessions_send", { sessionId: "s", message: "m" }, { session_id: "s", content: "m" }],
    ["memory_search", { query: "q", maxResults: 3, minScore: 0.35 }, { query: "q", max_results: 3, min_score: 0.35 }],
  ];
  for (const [tool, elsewhere, here] of calls) {
    test(`${tool} ${JSON.stringify(elsewhere)}`, () => {
      assert.deepEqual(JSON.parse(normalizeArguments(tool, JSON.stringify(elsewhere))), here);
    });
  }
});

// design: 001.17, 003.16, 003.18, 003.31
describe("converts arguments by the name of the call", () => {
  const calls: [tool: string, calledAs: string, elsewhere: object, here: object][] = [
    ["exec", "Bash", { command: "ls", timeout: 1_500, description: "x" }, { command: "ls", timeout_seconds: 2 }],
    [
      "grep",
      "Grep",
      { pattern: "x", output_mode: "files_with_matches", "-A": 1, "-B": 3, "-n": true, multiline: false },
      { pattern: "x", mode: "files", context: 3 },
    ],
    // What the tool does not have stays, and it rejects the call.
    ["grep", "Grep", { pattern: "x", "-C": 2, "-A": 1 }, { pattern: "x", context: 2, "-A": 1 }],
    ["grep", "Grep", { pattern: "x", multiline: true }, { pattern: "x", multiline: true }],
    ["process", "TaskOutput", { task_id: "1" }, { action: "poll", id: "1", wait_seconds: 30 }],
    [
      "process",
      "TaskOutput",
      { task_id: "1", block: false, timeout: 9_000 },
      { action: "poll", id: "1", wait_seconds: 0 },
    ],
    ["process", "TaskOutput", { task_id: "1", timeout: 600_000 }, { action: "poll", id: "1", wait_seconds: 120 }],
    ["process", "BashOutput", { bash_id: "1" }, { action: "poll", id: "1", wait_seconds: 0 }],
    ["process", "TaskStop", { task_id: "1" }, { action: "signal", id: "1" }],
    ["process", "KillShell", { shell_id: "1" }, { action: "signal", id: "1" }],
    ["memory_search", "memory_recall", { query: "q" }, { query: "q", max_results: 10 }],
    ["memory_search", "memory_recall", { query: "q", maxResults: 3 }, { query: "q", max_results: 3 }],
    ["memory_search", "memory_search", { query: "q" }, { query: "q" }],
  ];
  for (const [tool, calledAs, elsewhere, here] of calls) {
    test(`${calledAs} ${JSON.stringify(elsewhere)}`, () => {
      const once = normalizeArguments(tool, JSON.stringify(elsewhere), calledAs);
      assert.deepEqual(JSON.parse(once), here);
      assert.equal(normalizeArguments(tool, once, calledAs), once);
    });
  }

  // design: 001.15b
  test("keeps a time without a known unit, which the tool rejects", () => {
    const input = '{"command":"ls","timeout":5}';
    assert.equal(normalizeArguments("exec", input, "shell"), input);
  });
});

test("leaves arguments unchanged when they are valid, ambiguous or not an object", () => {
  for (const input of [
    '{ "path" : "a" }',
    '{"path":"a","file_path":"b"}',
    '{"toString":"a"}',
    '["file_path"]',
    '"file_path"',
    "null",
    "",
    '{"file_path": ',
  ]) {
    assert.equal(normalizeArguments("read", input), input);
  }
  assert.equal(normalizeArguments("mcp__files__read", '{"file_path":"a"}'), '{"file_path":"a"}');
  assert.equal(normalizeArguments("constructor", '{"file_path":"a"}'), '{"file_path":"a"}');
});

test("property: keeps all values, and is idempotent", () => {
  const names = fc.constantFrom(
    "id",
    "pid",
    "process_id",
    "task_id",
    "file_path",
    "path",
    "old_string",
    "colour",
    "__proto__",
  );
  fc.assert(
    fc.property(fc.constantFrom("edit", "process"), fc.dictionary(names, fc.string()), (tool, said) => {
      const once = normalizeArguments(tool, JSON.stringify(said));
      assert.equal(normalizeArguments(tool, once), once);
      const values = (text: string) =>
        Object.values(Values.parse(JSON.parse(text))).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      assert.deepEqual(values(once), values(JSON.stringify(said)));
    }),
  );
});

// design: 003.16
test("applies a deny rule for a path under each of its argument names", async () => {
  const rules = compileRules({ deny: ["write(secrets/**)"] });
  const decide = async (input: string) =>
    decidePermission(await parseCall(write, normalizeArguments("write", input)), context({ rules })).decision;
  assert.equal(await decide('{"file_path":"secrets/key","content":""}'), "deny");
  assert.equal(await decide('{"file_path":"notes/key","content":""}'), "allow");
});
