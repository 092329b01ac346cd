import assert from "node:assert/strict";
import { test } from "node:test";

import { parseSettings } from "@parley/chassis";

import { missingSecrets } from "../src/config/secrets.ts";
import { tomlLines } from "../src/config/toml.ts";

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

test("printed settings are TOML that reads back as the same settings", () => {
  const settings = parseSettings(text, "a.toml");
  assert.deepEqual(parseSettings(tomlLines(settings).join("\n"), "b.toml"), settings);
});

test("the secrets that are named and not set are listed with who wants them", () => {
  const settings = parseSettings(text, "a.toml");
  assert.deepEqual(missingSecrets(settings, { PARLEY_CHANNEL_CI: "x" }), [
    { name: "PARLEY_CHANNEL_BOT", wantedBy: "[channels.telegram.bot]" },
  ]);
});

test("a list of tables is printed as TOML as well, and each value with where it came from", () => {
  const path = (place: readonly string[]) => (place.at(-1) === "max_usd" ? "--set limits.max_usd" : "default");
  const settings = parseSettings('[[hooks]]\nevent = "Stop"\ncommand = "true"\n[limits]\nmax_usd = 2\n', "a.toml");
  const lines = tomlLines(settings, path);
  assert.ok(lines.includes("max_usd = 2  # --set limits.max_usd"));
  assert.deepEqual(parseSettings(lines.join("\n"), "b.toml"), settings);
});

test("a password in an address is not printed", () => {
  const settings = parseSettings('[[observers]]\nurl = "https://me:hunter22@host/x"\n', "a.toml");
  assert.doesNotMatch(tomlLines(settings).join("\n"), /hunter22/);
});
