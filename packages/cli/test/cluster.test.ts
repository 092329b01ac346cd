// The command against a real cluster, one for the whole file. Its Redis is separate, because the last test stops it.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { freePort, sharedCacheDir, startRedis, startLocalCluster, type Cluster, type RedisServer } from "@parley/local";
import { pollUntil } from "@parley/testing/until";
import { z } from "zod";

import { parley, runParley } from "./support/parley.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-cli-"));
const home = join(folder, "home");
let redis: RedisServer;
let cluster: Cluster;

before(async () => {
  redis = await startRedis({ dataDir: join(folder, "redis"), cacheDir: sharedCacheDir });
  cluster = await startLocalCluster({
    home,
    serversDir: sharedCacheDir,
    servers: { redis },
    replicas: { "channel-gateway": 2, "agent-core": 2 },
    environment: { PARLEY__LIMITS__MAX_REPEATED_CALLS: "7" },
  });
});

after(async () => {
  await cluster.stopNow();
  await redis.stop();
  rmSync(folder, { recursive: true, force: true });
});

const Events = z.array(z.looseObject({ type: z.string(), seq: z.number().optional(), state: z.string().optional() }));

function eventsIn(stdout: string) {
  return Events.parse(
    stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown),
  );
}

const words = (count: number): string => Array.from({ length: count }, (_, index) => `w${index + 1}`).join(" ");

test("sends several piped lines as one message and prints only the answer", async () => {
  const script = 'think: let me see\ntool: ls {"path":"."}\nthen\nsay: first line\nsay: second line\n';
  const { code, stdout, stderr } = await parley(home, ["chat"]).endInput(script).outcome();
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "first line\nsecond line\n", stderr: "" });
});

test("prints the settings of the running cluster unless the command names others", async () => {
  const running = await runParley(home, ["config", "print", "--origin"]);
  assert.match(running.stdout, /^max_repeated_calls = 7 {2}# PARLEY__LIMITS__MAX_REPEATED_CALLS$/m);
  const other = await runParley(home, ["config", "print", "--origin", "--preset", "repl"]);
  assert.match(other.stdout, /^max_repeated_calls = 5 {2}# default$/m);
});

test("prints the events as lines of JSON when the chat is in a pipe with --json", async () => {
  // Live events are complete only for an existing session: a subscriber of a new session may miss the first ones.
  const named = ["--conversation", "json"];
  assert.equal((await parley(home, ["send", "--wait", ...named, "say: ready"]).outcome()).code, 0);
  const { code, stdout } = await parley(home, ["chat", "--json", ...named])
    .endInput('tool: ls {"path":"."}\nthen\nsay: ok')
    .outcome();
  const types = eventsIn(stdout).map(({ type }) => type);
  assert.equal(code, 0);
  for (const type of ["accepted", "turn.started", "tool.started", "tool.finished", "text.delta", "turn.finished"]) {
    assert.ok(types.includes(type), `${type} in ${types.join(" ")}`);
  }
});

test("Ctrl-C stops a running turn", async () => {
  const run = parley(home, ["chat", "--json"]).endInput(`wait: 200\nsay: ${words(100)}`);
  await run.says(/text\.delta/);
  run.kill("SIGINT");
  const { code, stdout } = await run.outcome();
  assert.equal(code, 130);
  assert.equal(eventsIn(stdout).findLast(({ type }) => type === "turn.finished")?.state, "cancelled");
});

test("continues the chat over another gateway without loss or repetition when one dies", async () => {
  const run = parley(home, ["chat", "--json"]).endInput(`wait: 100\nsay: ${words(20)}`);
  await run.says(/text\.delta/);
  await cluster.kill("channel-gateway", 1, "SIGKILL");
  const { code, stdout, stderr } = await run.outcome();
  assert.equal(code, 0);
  assert.match(stderr, /reconnected/);
  const positions = eventsIn(stdout).flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
  assert.deepEqual(
    positions,
    positions.map((_, index) => (positions[0] ?? 0) + index),
  );
  assert.equal(eventsIn(stdout).findLast(({ type }) => type === "turn.finished")?.["text"], words(20));
  await cluster.whenReady("channel-gateway", 1);
});

test("prints a command's answer, and reports a refused message as an error without an answer", async () => {
  const { code, stdout } = await runParley(home, ["send", "--wait", "/nonsense"]);
  assert.equal(code, 0);
  assert.match(stdout, /Unknown command \/nonsense/);
  const refused = await parley(home, ["chat"]).endInput("x".repeat(400_000)).outcome();
  assert.equal(refused.code, 1);
  assert.equal(refused.stdout, "");
  assert.match(refused.stderr, /400315 bytes/);
});

test("lists every replica with its service, role, epoch and resource usage in status", async () => {
  const Row = z.object({
    service: z.string(),
    replica: z.string(),
    pid: z.number(),
    role: z.enum(["leader", "standby", "active"]),
    epoch: z.number().nullable(),
    ready: z.literal(true),
    uptimeSeconds: z.number(),
    rssMib: z.number().positive(),
  });
  const Status = z.looseObject({ healthy: z.literal(true), replicas: z.array(Row) });
  // On a busy machine a replica may respond too late.
  const status = await pollUntil(async () => {
    const { code, stdout } = await runParley(home, ["status", "--json"]);
    const found = Status.safeParse(JSON.parse(stdout));
    return code === 0 && found.success && found.data;
  }, "a healthy status");
  assert.deepEqual(
    status.replicas.map(({ replica, pid }) => `${replica} ${pid}`),
    cluster
      .replicas()
      .map(({ name, process: owner }) => `${name} ${owner?.pid ?? 0}`)
      .sort(),
  );
  assert.equal(status.replicas.filter(({ role }) => role === "leader").length, 1);
});

test("lists and shows sessions, and reports what stop has stopped", async () => {
  const sessions = await runParley(home, ["sessions"]);
  assert.match(sessions.stdout, /^\S.* main +idle/m);
  assert.doesNotMatch(sessions.stdout, /http:default:once-/);
  const calls = await runParley(home, ["sessions", "--calls", "--json"]);
  const Listed = z.object({ sessions: z.array(z.object({ key: z.string() })) });
  const { sessions: listed } = Listed.parse(JSON.parse(calls.stdout));
  // The first message in a pipe is the oldest call.
  const key = listed.findLast((session) => session.key.startsWith("http:default:once-"))?.key ?? "";
  const shown = await runParley(home, ["sessions", "show", key]);
  assert.match(shown.stdout, /agent .*\nfirst line\nsecond line\n/);
  const missing = await runParley(home, ["sessions", "show", "nothing"]);
  assert.deepEqual([missing.code, missing.stderr], [1, 'there is no session "nothing"\n']);
  const stopped = await runParley(home, ["stop"]);
  assert.deepEqual([stopped.code, stopped.stdout], [0, "Nothing was running.\n"]);
});

test("distinguishes a wrong token from an unknown account", async () => {
  const token = await runParley(home, ["sessions"], { env: { PARLEY_TOKEN: "not-the-token-at-all" } });
  assert.equal(token.code, 1);
  assert.match(token.stderr, /unset PARLEY_TOKEN/);
  const send = await runParley(home, ["send", "--channel", "irc", "--to", "#x", "hi"]);
  assert.equal(send.code, 1);
  assert.match(send.stderr, /\[channels\.irc\.default\]/);
});

test("never prints the token", async () => {
  for (const args of [
    ["status", "--json"],
    ["doctor", "--json"],
    ["logs", "--json"],
    ["config", "print"],
  ]) {
    const { stdout, stderr } = await runParley(home, args);
    assert.ok(!`${stdout}${stderr}`.includes(cluster.token), args.join(" "));
  }
});

test("prints the logs of every process as JSON lines in order of time", async () => {
  const { code, stdout } = await runParley(home, ["logs", "--json"]);
  assert.equal(code, 0);
  const Line = z.looseObject({ time: z.string().nullable(), level: z.string(), replica: z.string(), msg: z.string() });
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => Line.parse(JSON.parse(line)));
  const times = lines.flatMap(({ time }) => (time === null ? [] : [time]));
  assert.deepEqual(times, times.toSorted());
  const sources = new Set(lines.map(({ replica }) => replica));
  for (const { name } of cluster.replicas()) assert.ok(sources.has(name), name);
  const one = await runParley(home, ["logs", "--service", "store", "--lines", "1"]);
  assert.match(one.stdout, /^\S+ store-1 .*\n$/);
});

test("suggests the closest key when parley.toml is invalid", async () => {
  const file = join(folder, "wrong.toml");
  writeFileSync(file, '[sesion]\npolicy = "singleton"\n');
  const { code, stderr } = await runParley(home, ["config", "check", file]);
  assert.equal(code, 1);
  assert.match(stderr, /did you mean "session"/);
});

const Doctor = z.object({
  ok: z.boolean(),
  checks: z.array(z.object({ id: z.string(), severity: z.string(), message: z.string(), fix: z.string().nullable() })),
});

test("reports no error in doctor when the cluster is healthy", async () => {
  let last = "";
  // On a busy machine a replica may respond too late.
  const checks = await pollUntil(async () => {
    const { code, stdout } = await runParley(home, ["doctor", "--json"]);
    last = stdout;
    const found = Doctor.parse(JSON.parse(stdout));
    return code === 0 && found.ok && found.checks;
  }, "no error").catch((error: unknown) => assert.fail(`${String(error)}: ${last}`));
  assert.ok(checks.every(({ severity }) => severity !== "error"));
  const ids = new Set(checks.map(({ id }) => id));
  for (const id of [
    "node",
    "disk",
    "token",
    "postgres",
    "redis",
    "nats",
    "supervisor",
    "ready.store-1",
    "leader",
    "sandbox",
    "version",
    "clock",
  ]) {
    assert.ok(ids.has(id), id);
  }
});

test("checks only the remote cluster in doctor when its address is given", async () => {
  const [url = ""] = cluster.httpUrls;
  const env = { PARLEY_URL: url, PARLEY_TOKEN: cluster.token };
  const { stdout } = await runParley(join(folder, "nowhere"), ["doctor", "--json"], { env });
  const { checks } = Doctor.parse(JSON.parse(stdout));
  const ids = new Set(checks.map(({ id }) => id));
  for (const id of ["leader", "model", "sandbox", "version"]) assert.ok(ids.has(id), id);
  for (const id of ["home", "disk", "supervisor", "redis"]) assert.ok(!ids.has(id), id);
  assert.match(checks.find(({ id }) => id === "model")?.fix ?? "", /^where it runs: .*ANTHROPIC_API_KEY/);
  for (const { id, fix } of checks) assert.doesNotMatch(fix ?? "", /npm start|parley logs/, id);
  const dead = { ...env, PARLEY_URL: `http://127.0.0.1:${await freePort()}` };
  const { stderr } = await runParley(join(folder, "nowhere"), ["status"], { env: dead });
  assert.match(stderr, /Check --url/);
  assert.doesNotMatch(stderr, /npm start/);
});

test("prints the command that fixes a token file that others can read", async () => {
  chmodSync(cluster.tokenFile, 0o644);
  const { code, stdout } = await runParley(home, ["doctor", "--json"]);
  chmodSync(cluster.tokenFile, 0o600);
  const found = Doctor.parse(JSON.parse(stdout)).checks.find(({ id }) => id === "token");
  assert.deepEqual([code, found?.severity, found?.fix], [3, "error", `chmod 600 ${cluster.tokenFile}`]);
});

test("reports a missing cluster once in doctor; status and chat explain how to start one", async () => {
  const empty = join(folder, "empty");
  const { code, stdout } = await runParley(empty, ["doctor", "--json"]);
  const { checks } = Doctor.parse(JSON.parse(stdout));
  assert.equal(code, 3);
  assert.deepEqual(
    checks.filter(({ severity }) => severity === "error").map(({ id, fix }) => `${id}: ${fix ?? ""}`),
    ["supervisor: npm start"],
  );
  const status = await runParley(empty, ["status"], { env: { PARLEY_HTTP_PORT: "1" } });
  assert.equal(status.code, 1);
  assert.match(status.stderr, /npm start/);
});

test("prints the supervisor's state with exit code 3 when no gateway answers", async () => {
  const deaf = join(folder, "deaf");
  mkdirSync(deaf);
  const port = await freePort();
  const state = z.looseObject({}).parse(JSON.parse(readFileSync(join(home, "state.json"), "utf8")));
  writeFileSync(join(deaf, "state.json"), JSON.stringify({ ...state, httpUrls: [`http://127.0.0.1:${port}`] }));
  writeFileSync(join(deaf, "token"), cluster.token);
  const { code, stdout } = await runParley(deaf, ["status"]);
  assert.equal(code, 3);
  assert.match(stdout, /^not reachable: No gateway answers \(\S+: connection refused\)/);
  for (const { name, process: owner, restarts } of cluster.replicas()) {
    assert.match(stdout, new RegExp(`${name} +${owner?.pid ?? 0} +unknown .* yes .* ${restarts}$`, "m"));
  }
});

test("reports the address and the fix of a stopped Redis, and continues the other checks", async () => {
  await redis.stop();
  const { code, stdout } = await runParley(home, ["doctor", "--json"]);
  const { checks } = Doctor.parse(JSON.parse(stdout));
  const found = checks.find(({ id }) => id === "redis");
  const { port } = new URL(redis.url);
  assert.equal(code, 3);
  assert.equal(found?.severity, "error");
  assert.match(found.message, new RegExp(`127\\.0\\.0\\.1:${port}.*connection refused`));
  assert.equal(found.fix, `redis-server --port ${port} --appendonly yes --maxmemory-policy noeviction`);
  for (const id of ["postgres", "nats"]) assert.equal(checks.find((each) => each.id === id)?.severity, "ok", id);
});
