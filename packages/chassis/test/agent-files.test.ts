// Profiles in Markdown files next to parley.toml: what is read, what overrides it, and what is refused.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { ConfigError, explainSettings, loadSettings } from "@parley/chassis";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { readAgentFile } from "../src/agent-files.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** A parley.toml with these files in the folder `agents` next to it. */
async function settingsFile(text: string, agents: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder(cleanup);
  const path = join(folder, "parley.toml");
  writeFileSync(path, text);
  mkdirSync(join(folder, "agents"));
  for (const [name, content] of Object.entries(agents)) writeFileSync(join(folder, "agents", name), content);
  return path;
}

// design: 003.32
test("makes a profile of a sub-agent's file that was written for Claude Code", async () => {
  const path = await settingsFile("", {
    "reviewer.md": `---
name: code-reviewer
description: Use it after a change: it reads the diff, and reports.
tools: Read, Grep, Bash
model: inherit
color: purple
maxTurns: 12
---

State each problem with its line.

---
Never change a file.
`,
    "notes.txt": "no agent",
  });
  const { settings, originOf } = explainSettings(path);
  assert.deepEqual(settings.profiles, {
    "code-reviewer": {
      description: "Use it after a change: it reads the diff, and reports.",
      tools: ["Read", "Grep", "Bash"],
      max_iterations: 12,
      prompt: "minimal",
      system_prompt: "State each problem with its line.\n\n---\nNever change a file.",
    },
  });
  assert.match(originOf(["profiles", "code-reviewer", "tools"]), /agents\/reviewer\.md$/);
});

test("reads the keys of a profile, lists in every form, and the name of the file", () => {
  const head =
    'description: "a: b"\ntools:\n  - read\n  - "web_fetch"\nmax_usd: 0.5\nmodel: openai:gpt-5\r\neffort: low';
  assert.deepEqual(readAgentFile(`---\n${head}\n---`, "/x/agents/scout.md"), {
    name: "scout",
    profile: {
      description: "a: b",
      tools: ["read", "web_fetch"],
      max_usd: 0.5,
      model: "openai:gpt-5",
      effort: "low",
    },
  });
  const tools = (line: string) => readAgentFile(`---\n${line}\n---\n`, "a.md").profile["tools"];
  assert.deepEqual([tools("tools: [read, 'ls']"), tools("tools: []"), tools("tools:")], [["read", "ls"], [], []]);
});

// design: 003.32
test("prefers parley.toml to a file, and a file to the preset", async () => {
  const path = await settingsFile('preset = "goat"\n[profiles.explore]\nmax_iterations = 7\n', {
    "explore.md": "---\ndescription: Looks around.\nmax_iterations: 3\n---\nLook.\n",
  });
  const { explore, plan } = loadSettings(path).profiles;
  assert.deepEqual(
    [explore?.description, explore?.max_iterations, explore?.system_prompt],
    ["Looks around.", 7, "Look."],
  );
  assert.deepEqual(explore?.tools, ["read", "grep", "glob", "ls"]);
  assert.notEqual(plan, undefined);
});

for (const [what, agents, message] of [
  ["has no head", { "a.md": "Just a text.\n" }, /agents\/a\.md: must begin with a head/],
  ["has a head without an end", { "a.md": "---\nname: a\n" }, /agents\/a\.md: must begin with a head/],
  [
    "has a text of several lines in its head",
    { "a.md": "---\ndescription: >\n  b\n---\n" },
    /"description: >" .* is not/,
  ],
  ["has a nested value", { "a.md": "---\nhooks:\n  Stop: x\n---\n" }, /the line "Stop: x" of the head is not/],
  ["has a key twice", { "a.md": "---\nmodel: a\nmodel: b\n---\n" }, /model occurs twice/],
  [
    "has a key that no profile has",
    { "a.md": "---\npermissionMode: plan\n---\n" },
    /a\.md:\n.*unknown key "permissionMode"/,
  ],
  [
    "names a tool that does not exist",
    { "a.md": "---\ntools: Reed\n---\n", "b.md": "---\ntools: Unlike\n---\n" },
    /a\.md:\n.*there is no tool "Reed"; did you mean "read"\? docs[^]*no tool "Unlike"; docs\/tools\.md lists/,
  ],
  ["has a name that no profile can have", { "a.md": "---\nname: My Agent\n---\n" }, /a\.md:\n.*My Agent/],
  [
    "has the name of another one",
    { "a.md": "---\nname: same\n---\n", "b.md": "---\nname: same\n---\n" },
    /agents\/b\.md: .*agents\/a\.md has the same name, same/,
  ],
] as const) {
  test(`refuses to start when a file ${what}`, async () => {
    const path = await settingsFile("", agents);
    assert.throws(
      () => loadSettings(path),
      (error: unknown) => error instanceof ConfigError && message.test(error.message),
    );
  });
}
