import assert from "node:assert/strict";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { isReadByService, keepSecrets, readSecrets, secretsPath, withSecrets } from "../src/secrets.ts";
import { folder } from "./support/folder.ts";

test("keeps secrets in a file that only its owner can read", () => {
  using home = folder();
  const path = secretsPath(home.path);
  assert.deepEqual(readSecrets(home.path), {});
  writeFileSync(path, "# mine\nexport OLD_ONE=1\nANTHROPIC_API_KEY=before\n");
  chmodSync(path, 0o644);
  const hard = `a'b#c $HOME "d" \\n`;
  keepSecrets(home.path, { ANTHROPIC_API_KEY: "sk-after", PARLEY_CHANNEL_TELEGRAM: hard });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.match(readFileSync(path, "utf8"), /^# mine\nexport OLD_ONE=1\n/);
  assert.deepEqual(readSecrets(home.path), {
    OLD_ONE: "1",
    ANTHROPIC_API_KEY: "sk-after",
    PARLEY_CHANNEL_TELEGRAM: hard,
  });
});

test("refuses a value with line breaks and keeps the file", () => {
  using home = folder();
  keepSecrets(home.path, { A: "1" });
  assert.throws(() => keepSecrets(home.path, { B: "1\n2" }), { code: "bad_option", message: /line breaks/ });
  assert.deepEqual(readSecrets(home.path), { A: "1" });
});

test("lets variables of the caller override secrets, except empty ones", () => {
  using home = folder();
  keepSecrets(home.path, { A: "kept", B: "kept" });
  assert.deepEqual(withSecrets(home.path, { A: "given", B: "", C: "given" }), { A: "given", B: "kept", C: "given" });
});

test("knows which variables a service receives", () => {
  for (const name of [
    "ANTHROPIC_API_KEY",
    "PARLEY_CHANNEL_X",
    "PARLEY_TOOL_X",
    "AWS_SECRET_ACCESS_KEY",
    "PARLEY_TOKEN",
  ]) {
    assert.equal(isReadByService(name), true, name);
  }
  for (const name of ["TELEGRAM_TOKEN", "GITHUB_TOKEN"]) assert.equal(isReadByService(name), false, name);
});
