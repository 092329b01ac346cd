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
