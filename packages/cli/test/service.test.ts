import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";

import { Cleanup, startTestCluster, temporaryFolder } from "@parley/testing";

import { unitText } from "../src/commands/service.ts";
import { parley, runParley } from "./support/parley.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

/** A machine whose systemctl records its arguments and answers like one that works, or like one without a user manager. */
async function machine({ works = true } = {}) {
  const folder = await temporaryFolder(cleanup);
  const [bin, calls] = [join(folder, "bin"), join(folder, "calls")];
  mkdirSync(bin);
  const refusal = 'echo "Failed to connect to bus: No medium found" >&2; exit 1';
  writeFileSync(join(bin, "systemctl"), `#!/bin/sh\necho "$*" >> ${calls}\n${works ? "" : refusal}\n`);
  chmodSync(join(bin, "systemctl"), 0o755);
  const PATH = `${bin}${delimiter}${process.env["PATH"] ?? ""}`;
  return {
    home: join(folder, "home"),
    unit: join(folder, "config/systemd/user/parley.service"),
    env: { PATH, XDG_CONFIG_HOME: join(folder, "config") },
    calls: () => readFileSync(calls, "utf8").trim().split("\n"),
  };
}

test("installs, starts and removes a unit that starts Parley on this data folder", async () => {
  const { home, unit, env, calls } = await machine();
  const installed = await runParley(home, ["service", "install", "--", "--port", "9000"], { env });
  assert.equal(installed.code, 0, installed.stderr);
  assert.match(installed.stderr, /the rehearsal model answers\. Set one up: npx parley onboard/);
  assert.deepEqual(calls(), ["--user show-environment", "--user daemon-reload", "--user enable --now parley.service"]);
  const text = readFileSync(unit, "utf8");
  assert.match(text, new RegExp(`^Environment="PARLEY_HOME=${home}" "PATH=`, "m"));
  const command = /^ExecStart=(.*)$/m.exec(text)?.[1] ?? "";
  assert.match(command, /"--no-chat" "--port" "9000"$/);
  // The command of the unit is one that works in its folder.
  const cwd = /^WorkingDirectory=(.*)$/m.exec(text)?.[1] ?? "";
  const { status, stdout } = spawnSync("sh", ["-c", `${command} --help`], { cwd, encoding: "utf8" });
  assert.deepEqual([status, stdout.startsWith("npm start --")], [0, true]);

  const removed = await runParley(home, ["service", "uninstall"], { env });
  assert.equal(removed.code, 0, removed.stderr);
  assert.equal(existsSync(unit), false);
  assert.deepEqual(calls().slice(-2), ["--user disable --now parley.service", "--user daemon-reload"]);
  assert.match((await runParley(home, ["service", "uninstall"], { env })).stdout, /^There is no /);
});

test("does not mention the rehearsal model when the data folder has a model of its own", async () => {
  const { home, env } = await machine();
  mkdirSync(home);
  writeFileSync(join(home, "secrets.env"), "ANTHROPIC_API_KEY=k\n", { mode: 0o600 });
  const { code, stderr } = await runParley(home, ["service", "install"], { env });
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stderr, /rehearsal/);
});

test("counts the options of the service, and the parley.toml in the folder where it runs", async () => {
  const { home, env } = await machine();
  const chosen = await runParley(home, ["service", "install", "--", "--set", "agent.model=openai:x"], { env });
  assert.equal(chosen.code, 0, chosen.stderr);
  assert.doesNotMatch(chosen.stderr, /rehearsal/);
  const cwd = await temporaryFolder(cleanup);
  writeFileSync(join(cwd, "parley.toml"), '[agent]\nmodel = "openai:x"\n');
  const elsewhere = parley(home, ["service", "install"], env, cwd);
  assert.match((await elsewhere.outcome()).stderr, /the rehearsal model answers/);
});

test("refuses a data folder on which Parley runs, also when PARLEY_URL names another gateway", async () => {
  const { home, unit, env } = await machine();
  await startTestCluster(cleanup, { home, processes: [] });
  const PARLEY_URL = "http://127.0.0.1:9";
  const { code, stderr } = await runParley(home, ["service", "install"], { env: { ...env, PARLEY_URL } });
  assert.equal(code, 1);
  assert.match(stderr, /Parley already runs on .*npx parley down/s);
  assert.equal(existsSync(unit), false);
});

test("writes nothing and names the other way when systemd does not run for this user", async () => {
  const { home, unit, env } = await machine({ works: false });
  const { code, stderr } = await runParley(home, ["service", "install"], { env });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^systemctl --user show-environment failed: Failed to connect to bus: No medium found\n.*npx parley up --detach\n$/,
  );
  assert.equal(existsSync(unit), false);
});

const noVerify = spawnSync("systemd-analyze", ["--version"]).status !== 0 && "no systemd-analyze";

test("writes a unit that systemd accepts, also with names that it would interpret", { skip: noVerify }, async () => {
  const folder = join(await temporaryFolder(cleanup), 'a 100%n "$HOME" folder');
  mkdirSync(folder);
  const facts = { root: folder, home: join(folder, "home"), node: process.execPath, path: "/usr/bin" };
  const unit = join(await temporaryFolder(cleanup), "parley.service");
  writeFileSync(unit, unitText({ ...facts, options: ["--set", "agent.model=$x%y"] }));
  const env = { ...process.env, XDG_RUNTIME_DIR: folder };
  const verify = spawnSync("systemd-analyze", ["verify", "--user", "--man=no", unit], { encoding: "utf8", env });
  const { status, stderr } = verify;
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /parley\.service/);
});
