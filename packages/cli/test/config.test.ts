import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { parseSettings } from "@parley/chassis";

import { missingSecrets } from "../src/cluster/settings.ts";
import { tomlLines } from "../src/cluster/settings.ts";
import { runParley } from "./support/parley.ts";

const text = `
[agent]
system_prompt = "say \\"hi\\"\\nand more"
[channels.telegram.bot]
token_env = "PARLEY_CHANNEL_BOT"
owners = ["1", "2"]
[webhooks.ci]
secret_env = "PARLEY_CHANNEL_CI"
reply_to = { channel = "irc", account = "net", conversation = "#x" }
`;

test("prints settings as TOML that parses to the same settings", () => {
  const settings = parseSettings(text, "a.toml");
  assert.deepEqual(parseSettings(tomlLines(settings).join("\n"), "b.toml"), settings);
});

test("lists named but unset secrets with the settings that need them", () => {
  const settings = parseSettings(text, "a.toml");
  assert.deepEqual(missingSecrets(settings, { PARLEY_CHANNEL_CI: "x" }), [
    { name: "PARLEY_CHANNEL_BOT", wantedBy: "[channels.telegram.bot]" },
  ]);
});

test("prints lists of tables as TOML, and each value with its source", () => {
  const path = (place: readonly string[]) => (place.at(-1) === "max_usd" ? "--set limits.max_usd" : "default");
  const settings = parseSettings('[[hooks]]\nevent = "Stop"\ncommand = "true"\n[limits]\nmax_usd = 2\n', "a.toml");
  const lines = tomlLines(settings, path);
  assert.ok(lines.includes("max_usd = 2  # --set limits.max_usd"));
  assert.deepEqual(parseSettings(lines.join("\n"), "b.toml"), settings);
});

test("redacts a password in a URL", () => {
  const settings = parseSettings('[[observers]]\nurl = "https://me:hunter22@host/x"\n', "a.toml");
  assert.doesNotMatch(tomlLines(settings).join("\n"), /hunter22/);
});

test("config check names the hook when its matcher matches no tool", async () => {
  const folder = await mkdtemp(join(tmpdir(), "parley-config-"));
  try {
    const file = join(folder, "parley.toml");
    const hook = (matcher: string) => `[[hooks]]\nevent = "PreToolUse"\nmatcher = "${matcher}"\ncommand = "true"\n`;
    await writeFile(file, hook("Bash|exce") + hook("mcp__github__*"));
    const { code, stdout } = await runParley(folder, ["config", "check", file, "--json"]);
    assert.equal(code, 0);
    const { warnings } = JSON.parse(stdout) as { warnings: string[] };
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /hooks\[0\].*"exce" matches no tool/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("config check names the voice settings that have no effect", async () => {
  const folder = await mkdtemp(join(tmpdir(), "parley-config-"));
  try {
    const file = join(folder, "parley.toml");
    await writeFile(
      file,
      '[voice]\npush_poll_ms = 5000\nnotify = "notifications/stt/updated"\nresource = "stt://{session_id}"\n',
    );
    const { code, stdout } = await runParley(folder, ["config", "check", file, "--json"]);
    assert.equal(code, 0);
    const { warnings } = JSON.parse(stdout) as { warnings: string[] };
    assert.deepEqual(
      warnings.map((warning) => /^voice\.(\w+) has no effect/.exec(warning)?.[1]),
      ["notify", "resource", "push_poll_ms"],
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});
