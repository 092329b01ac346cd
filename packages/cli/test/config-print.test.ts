// `parley config print|check` as processes: with a preset, variables and flags.
import assert from "node:assert/strict";
import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { runParley } from "./support/parley.ts";

test("names the source of each value in print --origin, and of each mistake in check", async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), "parley-config-"));
  const home = folder.path;
  const env = { PARLEY__LIMITS__MAX_TOKENS: "5000", PARLEY_PRESET: "repl" };
  const flags = ["--preset", "nanobot", "--set", "limits.max_usd=2"];
  const printed = await runParley(home, ["config", "print", "--origin", ...flags], { env });
  assert.equal(printed.code, 0);
  assert.match(printed.stdout, /^preset = "nanobot" {2}# --preset$/m);
  assert.match(printed.stdout, /^max_iterations = 20 {2}# preset nanobot$/m);
  assert.match(printed.stdout, /^max_tokens = 5000 {2}# PARLEY__LIMITS__MAX_TOKENS$/m);
  assert.match(printed.stdout, /^max_usd = 2 {2}# --set limits\.max_usd$/m);
  assert.match(printed.stdout, /^max_repeated_calls = 5 {2}# default$/m);
  const wrong = await runParley(home, ["config", "check", "--set", "limits.max_uds=2"], { env });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /--set limits\.max_uds:\n.*did you mean "max_usd"/);
});
