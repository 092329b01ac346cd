// `parley config check` as a process: problems of the settings that the schema does not detect.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

test("config check and doctor name hooks whose program or script is missing", async () => {
  const hook = (name: string, command: string) =>
    `[[hooks]]\nname = "${name}"\nevent = "Stop"\non_failure = "closed"\ncommand = "${command}"\n`;
  const settings = `${hook("guard", "/nowhere/guard.sh --strict")}${hook("script", "sh lost/run.sh")}${hook("fine", "/bin/sh -c true")}`;
  const { code, stderr } = await check(settings);
  assert.equal(code, 0);
  assert.match(stderr, /The hook guard fails and refuses what it guards: there is no file \/nowhere\/guard\.sh\n/);
  assert.match(stderr, /The hook script .*\/lost\/run\.sh\n/);
  assert.doesNotMatch(stderr, /hook fine/);
  const { stdout } = await runParley(home, ["doctor"]);
  assert.match(stdout, /! hooks .*The hook guard .*no file \/nowhere\/guard\.sh/);
});

test("adds a webhook to the settings that apply, or to a new file in the data folder", async () => {
  const [fresh, elsewhere] = [join(home, "fresh"), join(home, "elsewhere")];
  mkdirSync(elsewhere);
  const add = (name: string, env: Record<string, string> = {}) =>
    runParley(fresh, ["webhooks", "add", name, "--json"], { cwd: elsewhere, env });
  const first = await add("build");
  assert.equal(first.code, 0, first.stderr);
  assert.match(readFileSync(join(fresh, "parley.toml"), "utf8"), /\[webhooks\.build\]/);
  const chosen = join(home, "chosen.toml");
  assert.equal((await add("other", { PARLEY_CONFIG: chosen })).code, 0);
  assert.match(readFileSync(chosen, "utf8"), /\[webhooks\.other\]/);
  assert.deepEqual(readdirSync(elsewhere), []);
});

test("webhooks add accepts settings that name a profile of an agent file", async () => {
  const folder = join(home, "with-agents");
  mkdirSync(join(folder, "agents"), { recursive: true });
  writeFileSync(join(folder, "agents", "helper.md"), "---\nname: helper\ndescription: Helps\n---\nYou help.\n");
  writeFileSync(join(folder, "parley.toml"), '[subagents]\nprofile = "helper"\n');
  const { code, stderr } = await runParley(folder, ["webhooks", "add", "build"], { cwd: folder });
  assert.equal(code, 0, stderr);
});

test("config check lists each mistake of several sources, and a text that is not TOML as one mistake", async () => {
  const errorsOf = async (settings: string, ...options: string[]) =>
    Answer.parse(JSON.parse((await check(settings, "--json", ...options)).stdout)).errors;
  const errors = await errorsOf("[limits]\nmax_usd = true\n", "--set", "agent.modle=x");
  assert.equal(errors.length, 2);
  assert.match(errors.join("\n"), /^\[agent\] unknown key "modle".*\nlimits\.max_usd: /);
  const [broken, ...others] = await errorsOf("[agent\nmodel = 1\n");
  assert.match(broken ?? "", /parley\.toml: not TOML: /);
  assert.deepEqual(others, []);
});

test("config check finds the secrets of the data folder", async () => {
  const folder = join(home, "with-secrets");
  mkdirSync(folder);
  writeFileSync(join(folder, "secrets.env"), "PARLEY_CHANNEL_ONE=k\n", { mode: 0o600 });
  const webhook = (name: string) => `[webhooks.${name}]\nsecret_env = "PARLEY_CHANNEL_${name.toUpperCase()}"\n`;
  writeFileSync(join(folder, "parley.toml"), webhook("one") + webhook("two"));
  const { stdout } = await runParley(folder, ["config", "check", "--json"]);
  const { missingSecrets } = z
    .object({ missingSecrets: z.array(z.object({ name: z.string() })) })
    .parse(JSON.parse(stdout));
  assert.deepEqual(
    missingSecrets.map(({ name }) => name),
    ["PARLEY_CHANNEL_TWO"],
  );
});

test("config check accepts programs elsewhere", async () => {
  const { code } = await check('[mcp.servers.good]\ncommand = "npx"\nargs = ["-y", "server", "/workspace"]\n');
  assert.equal(code, 0);
});
