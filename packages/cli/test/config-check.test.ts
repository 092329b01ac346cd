// `parley config check` as a process: problems of the settings that the schema does not detect.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { z } from "zod";

import { runParley } from "./support/parley.ts";

const Answer = z.object({ ok: z.boolean(), errors: z.array(z.string()) });

const home = mkdtempSync(join(tmpdir(), "parley-check-"));
after(() => rmSync(home, { recursive: true, force: true }));
mkdirSync(join(home, "workspace"));

async function check(settings: string, ...options: string[]) {
  writeFileSync(join(home, "parley.toml"), settings);
  return runParley(home, ["config", "check", ...options]);
}

test("config check names MCP servers and hooks whose programs the agent could change", async () => {
  const settings = `[mcp.servers.bad]
command = "./serve"
[[hooks]]
name = "guard"
event = "Stop"
command = "workspace/guard.sh"
`;
  const { code, stderr } = await check(settings);
  assert.equal(code, 1);
  assert.match(stderr, /mcp\.servers\.bad: "\.\/serve" is a relative path/);
  assert.match(stderr, /the hook guard: "workspace\/guard\.sh" is in the workspace/);
  const { stdout } = await check(settings, "--json");
  const { ok, errors } = Answer.parse(JSON.parse(stdout));
  assert.deepEqual([ok, errors.length], [false, 2]);
});

test("config check accepts programs elsewhere", async () => {
  const { code } = await check('[mcp.servers.good]\ncommand = "npx"\nargs = ["-y", "server", "/workspace"]\n');
  assert.equal(code, 0);
});
