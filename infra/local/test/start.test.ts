import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { EventEmitter } from "node:events";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { explainSettings } from "@parley/chassis";

import { holderOf, tryLock, withLock } from "../src/lock.ts";
import { readOptions } from "../src/main/options.ts";
import { countStopRequests } from "../src/main/stop-requests.ts";
import { describeModel, isModelConfigured } from "../src/configured-model.ts";
import { freePort } from "../src/servers/ports.ts";
import { Backoff } from "../src/supervisor/replica.ts";
import { LogFile } from "../src/supervisor/log-file.ts";
import { folder } from "./support/folder.ts";

test("prefers flags to the environment, and uses defaults for the rest", () => {
  const options = readOptions(
    `--port 0 --replicas agent-core=2,channel-gateway=3 --set limits.max_usd=2 --preset goat --set limits.max_iterations=9`.split(
      " ",
    ),
    { PARLEY_HTTP_PORT: "9000", PARLEY_HOME: "data" },
    "/here",
  );
  assert.deepEqual(options, {
    help: false,
    once: null,
    replicas: { "agent-core": 2, "channel-gateway": 3 },
    httpPort: 0,
    portChosen: true,
    home: "/here/data",
    settings: ["preset=goat", "limits.max_usd=2", "limits.max_iterations=9"],
    chat: true,
    detach: false,
  });
  assert.deepEqual([readOptions([], {}, "/here").home, readOptions([], {}, "/here").httpPort], ["/here/.parley", 8787]);
});

test("names an invalid option", () => {
  for (const [args, message] of [
    [["--colour"], /--colour/],
    [["--once", "hello", "-d"], /use it without --detach/],
    [["--port", "many"], /"many" is not a port/],
    [["--replicas", "gateway=2"], /no service "gateway"/],
    [["--replicas", "store=0"], /store needs a number/],
  ] as const) {
    assert.throws(() => readOptions(args, {}, "/"), { code: "bad_option", message });
  }
});

test("counts copies of one Ctrl-C as one request, and a later Ctrl-C as the second", () => {
  const source = new EventEmitter();
  let clock = 1_000;
  const requests = countStopRequests(source, () => clock);
  for (const at of [1_000, 1_004, 1_120]) {
    clock = at;
    source.emit("SIGINT");
  }
  assert.deepEqual([requests.first.aborted, requests.second.aborted], [true, false]);
  clock = 1_500;
  source.emit("SIGINT");
  assert.equal(requests.second.aborted, true);
});

test("ignores Ctrl-C and still handles SIGTERM while the chat is open", () => {
  const source = new EventEmitter();
  const requests = countStopRequests(source);
  requests.ignoreInterrupts = true;
  source.emit("SIGINT");
  assert.equal(requests.first.aborted, false);
  source.emit("SIGTERM");
  assert.equal(requests.first.aborted, true);
});

test("restarts immediately, then with growing delays, and resets the delay after a long run", () => {
  const backoff = new Backoff();
  const delays = Array.from({ length: 9 }, () => backoff.nextDelayMs(50));
  assert.deepEqual(delays, [0, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  assert.equal(backoff.nextDelayMs(10_000), 0);
});

test("describes the model, and names the rehearsal model as such", () => {
  using home = folder();
  const config = join(home.path, "parley.toml");
  writeFileSync(config, '[agent]\nmodel = "claude-in-toml"\n');
  const said = (environment: Record<string, string>, path?: string) =>
    describeModel(environment, explainSettings(path, environment));
  assert.equal(said({}), "rehearsal: a built-in scripted model, no key set");
  assert.equal(said({ PARLEY_MODEL: "claude-x", ANTHROPIC_BASE_URL: "http://h" }, config), "claude-x at http://h");
  assert.equal(said({}, config), "claude-in-toml (parley.toml)");
  assert.equal(said({ ANTHROPIC_API_KEY: "k" }), "claude-sonnet-5-5, the default model");
  const local = { OPENAI_BASE_URL: "http://h/v1", ANTHROPIC_BASE_URL: "http://a" };
  assert.equal(said({ ...local, PARLEY_MODEL: "openai:llama3:8b" }), "openai:llama3:8b at http://h/v1");
  assert.equal(said({ ...local, PARLEY_MODEL: "anthropic:claude-x" }), "anthropic:claude-x at http://a");
  assert.match(said(local), /^rehearsal: .*PARLEY_MODEL=openai:<model>/);
});

test("needs a choice of the model unless the settings name one or Claude's key is set", () => {
  const configured = (environment: Record<string, string>) =>
    isModelConfigured(environment, explainSettings(undefined, environment).settings);
  assert.equal(configured({}), false);
  assert.equal(configured({ OPENAI_API_KEY: "k", OPENAI_BASE_URL: "http://h/v1" }), false);
  assert.equal(configured({ PARLEY_MODEL: "rehearsal" }), true);
  assert.equal(configured({ ANTHROPIC_API_KEY: "k" }), true);
});

test("rotates a log once at its limit and keeps its last lines", () => {
  using home = folder();
  const path = join(home.path, "a.log");
  using log = new LogFile(path, { limitBytes: 100 });
  for (let line = 1; line <= 30; line += 1) log.write(Buffer.from(`line ${line}\n`));
  assert.ok(statSync(path).size <= 100);
  assert.ok(statSync(`${path}.1`).size <= 100);
  assert.match(readFileSync(path, "utf8"), /line 30\n$/);
  assert.deepEqual(log.lastLines(2), ["line 29", "line 30"]);
});

test("names the living holder of a lock, and replaces a dead holder's lock", () => {
  using home = folder();
  const path = join(home.path, "deep", "lock");
  mkdirSync(join(home.path, "deep"));
  writeFileSync(path, JSON.stringify({ pid: process.pid, started: "another start" }));
  const mine = tryLock(path);
  assert.ok("release" in mine);
  assert.equal(holderOf(path)?.pid, process.pid);
  const second = tryLock(path);
  assert.ok("heldBy" in second);
  assert.equal(second.heldBy.pid, process.pid);
  mine.release();
  const third = tryLock(path);
  assert.ok("release" in third);
  mine.release(); // it has another owner now and must not be released
  assert.equal(holderOf(path)?.pid, process.pid);
  third.release();
});

test("runs work under a lock one at a time", async () => {
  using home = folder();
  let inside = 0;
  const work = async (): Promise<void> => {
    inside += 1;
    assert.equal(inside, 1);
    await new Promise(setImmediate);
    inside -= 1;
  };
  await Promise.all([1, 2, 3, 4].map(() => withLock(join(home.path, "lock"), work)));
});

test("returns no port twice before a server listens on it, here or in another process", async () => {
  const port = await freePort();
  await assert.rejects(freePort(port, port), { code: "port_taken" });
  const module = new URL("../src/servers/ports.ts", import.meta.url).href;
  const script = `const { freePort } = await import(${JSON.stringify(module)});
    console.log(await freePort(${port}, ${port}).catch(({ code }) => code));`;
  const args = ["--conditions=@parley/source", "--input-type=module", "--eval", script];
  assert.equal(spawnSync(process.execPath, args, { encoding: "utf8" }).stdout.trim(), "port_taken");
});
