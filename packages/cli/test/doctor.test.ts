import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { parseSettings } from "@parley/chassis";
import type { ReplicaReport, store } from "@parley/contracts";

import {
  channelFindings,
  clockFinding,
  deliveryFindings,
  leaderFinding,
  modelFinding,
  mcpFindings,
  sandboxFindings,
  startFindings,
  versionFinding,
} from "../src/doctor/cluster.ts";
import { error, ok, warning, type DoctorContext } from "../src/doctor/finding.ts";
import { addressOf, exchange, NoResponseError, type Address } from "../src/doctor/servers.ts";
import { fixesFor } from "../src/doctor/finding.ts";
import { diskFinding, nodeFinding, wildcardFinding } from "../src/doctor/machine.ts";
import { modelServer, modelServerFinding } from "../src/doctor/model.ts";
import { scheduleFindings } from "../src/doctor/schedules.ts";
import { secretFileFinding, secrets, secretsFile, unreadFinding } from "../src/doctor/secrets.ts";
import { findingsText, runChecks } from "../src/doctor/doctor.ts";
import {
  natsFinding,
  olderThan,
  redisAnswered,
  redisFinding,
  respCommand,
  unreachable,
} from "../src/doctor/servers.ts";
import { GatewayUnreachableError } from "../src/cluster/gateway.ts";
import { asTyped } from "../src/io/command-name.ts";
import { plain } from "../src/io/io.ts";
import { parley } from "./support/parley.ts";

const report = (more: Partial<ReplicaReport>): ReplicaReport => ({
  service: "agent-core",
  replica: "agent-core-1",
  pid: 1,
  role: "standby",
  epoch: null,
  ready: true,
  uptimeSeconds: 1,
  rssMib: 1,
  version: "1",
  details: {},
  ...more,
});

test("accepts exactly one leader", () => {
  const leader = report({ role: "leader", epoch: 3 });
  assert.equal(leaderFinding([leader, report({})]).severity, "ok");
  assert.equal(leaderFinding([report({})]).severity, "error");
  assert.equal(leaderFinding([leader, leader]).severity, "error");
});

test("reports why a replica is not ready", () => {
  const store = { service: "store", replica: "store-1", ready: false } as const;
  const waitingFor = "waiting for the database: migration 0033_x.sql is not applied yet; run the migrations";
  const [finding, ...others] = startFindings(
    [report({}), report({ ...store, details: { waitingFor } })],
    fixesFor(true),
  );
  assert.deepEqual(others, []);
  assert.equal(finding?.severity, "error");
  assert.equal(finding.message, `store-1 is not ready: ${waitingFor}`);
});

test("warns about a model without a key, and reports a refused key as an error", () => {
  assert.equal(modelFinding({ provider: "anthropic", model: "m", note: null }).severity, "ok");
  assert.equal(modelFinding({ provider: "rehearsal", model: "rehearsal", note: "no key" }).severity, "warning");
  const shown = modelFinding({ provider: "rehearsal", model: "rehearsal", note: "no key" }, fixesFor(false), true);
  assert.match(shown.message, /people who write on a channel get its answers/);
  const refused = (provider: string) => modelFinding({ provider, model: "m", note: "the key was refused" });
  assert.equal(refused("anthropic").severity, "error");
  assert.match(refused("anthropic").fix ?? "", /ANTHROPIC_API_KEY/);
  assert.match(refused("openai").fix ?? "", /OPENAI_API_KEY/);
  assert.equal(
    modelFinding({ provider: "anthropic", model: "m", note: "m is deprecated and will be retired" }).severity,
    "warning",
  );
  assert.equal(modelFinding(null).severity, "error");
});

test("reports the isolation of exec for each tool-runner", () => {
  const runner = (isolation: string): ReplicaReport => report({ service: "tool-runner", details: { isolation } });
  const severities = ["bubblewrap: no network", "container: …", "none: …", "exec refused: no bwrap"].map(
    (isolation) => sandboxFindings([runner(isolation)])[0]?.severity,
  );
  assert.deepEqual(severities, ["ok", "ok", "warning", "warning"]);
  assert.equal(sandboxFindings([])[0]?.severity, "error");
  const limited = report({
    service: "tool-runner",
    details: { isolation: "container: …", limits: "memory: cgroup; cpu: none" },
  });
  assert.match(sandboxFindings([limited])[0]?.message ?? "", /container: … \(limits: memory: cgroup; cpu: none\)$/);
});

test("warns when commands can reach the internet", () => {
  const open = report({
    service: "tool-runner",
    details: { isolation: "container: …; that network reaches the internet", commandsReachInternet: true },
  });
  const [finding] = sandboxFindings([open]);
  assert.equal(finding?.severity, "warning");
  assert.match(finding.message, /reaches the internet/);
  assert.match(finding.fix ?? "", /PARLEY_EXEC_ISOLATION=auto/);
});

test("suggests remedies on the remote machine when the cluster runs elsewhere", () => {
  const there = fixesFor(true);
  const runner = (details: ReplicaReport["details"]) => report({ service: "tool-runner", details });
  const findings = [
    leaderFinding([], there),
    modelFinding(null, there),
    modelFinding({ provider: "rehearsal", model: "rehearsal", note: "no key" }, there),
    modelFinding({ provider: "anthropic", model: "m", note: "the key was refused" }, there),
    modelFinding({ provider: "anthropic", model: "m", note: "m is deprecated" }, there),
    ...sandboxFindings([], there),
    ...["exec refused: no bwrap", "none: …"].flatMap((isolation) => sandboxFindings([runner({ isolation })], there)),
    ...sandboxFindings([runner({ isolation: "container: …", commandsReachInternet: true })], there),
    ...mcpFindings([runner({ mcp: "files: broken", mcpDown: 1 })], there),
    ...deliveryFindings({ outbox: { unknown: 1 }, inbox: { dead: 1 } }, there),
  ];
  assert.equal(findings.length, 12);
  for (const { id, severity, fix } of findings) {
    assert.notEqual(severity, "ok", id);
    assert.doesNotMatch(fix ?? "", /npm start|parley logs|restart Parley|apt-get/, id);
  }
});

test("warns about an unusable MCP server with its problem, and is silent without servers", () => {
  const runner = (mcpDown: number): ReplicaReport =>
    report({ service: "tool-runner", details: { mcp: "files: broken, 0 tools (no program)", mcpDown } });
  assert.deepEqual(mcpFindings([report({ service: "tool-runner" })]), []);
  assert.deepEqual(
    [runner(0), runner(1)].map((each) => mcpFindings([each])[0]?.severity),
    ["ok", "warning"],
  );
  assert.match(mcpFindings([runner(1)])[0]?.message ?? "", /files: broken/);
});

test("warns about different versions", () => {
  assert.equal(versionFinding({ version: "1", replicas: [report({})] }, "1").severity, "ok");
  assert.match(versionFinding({ version: "1", replicas: [report({ version: "2" })] }, "1").message, /the cluster 2/);
});

test("warns about a clock difference of two seconds", () => {
  assert.equal(clockFinding(1_400).severity, "ok");
  assert.match(clockFinding(-5_000).message, /5\.0 s behind/);
});

test("warns about unknown or dropped deliveries if the gateway counts them", () => {
  assert.deepEqual(deliveryFindings({}), []);
  assert.equal(deliveryFindings({ outbox: { unknown: 2 } })[0]?.severity, "warning");
  assert.equal(deliveryFindings({ outbox: { unknown: 0 }, inbox: { dead: 0 } })[0]?.severity, "ok");
});

test("prints the command that fixes a secret file that others may read", () => {
  assert.equal(secretFileFinding("token", "/h/token", 0o100600).severity, "ok");
  assert.equal(secretFileFinding("token", "/h/my token", 0o100644).fix, "chmod 600 '/h/my token'");
});

test("warns about little disk space, and reports an almost full disk as an error", () => {
  const mib = 1024 * 1024;
  assert.deepEqual(
    [2_000, 500, 50].map((free) => diskFinding(free * mib, "/h").severity),
    ["ok", "warning", "error"],
  );
  assert.equal(nodeFinding("22.1.0").severity, "error");
});

test("requires a supported Redis version without eviction", () => {
  const info = (version: string, policy: string): string =>
    `+PONG\r\n$99\r\nredis_version:${version}\r\nmaxmemory_policy:${policy}\r\n`;
  assert.equal(redisFinding(info("7.0.15", "noeviction"), "h:1").severity, "ok");
  assert.match(redisFinding(info("7.0.15", "allkeys-lru"), "h:1").fix ?? "", /config set maxmemory-policy noeviction/);
  assert.equal(redisFinding(info("6.0.0", "noeviction"), "h:1").severity, "error");
  assert.match(redisFinding("-NOAUTH Authentication required.\r\n", "h:1").message, /NOAUTH/);
});

test("waits for the complete reply of Redis", () => {
  assert.equal(respCommand(["PING"]), "*1\r\n$4\r\nPING\r\n");
  assert.equal(redisAnswered("+PONG\r\n$5\r\nab"), false);
  assert.equal(redisAnswered("+PONG\r\n$5\r\nabcde\r\n"), true);
  assert.equal(redisAnswered("-ERR no\r\n"), true);
});

test("requires a supported NATS version, and recognises other servers", () => {
  assert.equal(natsFinding('INFO {"server_id":"x","version":"2.9.10"} \r\n', "h:1").severity, "ok");
  assert.equal(natsFinding('INFO {"version":"2.8.4"} \r\n', "h:1").severity, "error");
  assert.equal(natsFinding("HTTP/1.1 400\r\n", "h:1").severity, "error");
  assert.equal(olderThan("2.10.0", "2.9"), false);
});

/** Accepts connections and sends nothing. */
async function silentServer(): Promise<Address & { close(): Promise<void> }> {
  const server = createServer((socket) => socket.resume());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const at = server.address();
  assert.ok(typeof at === "object" && at !== null);
  return {
    ...addressOf(`redis://:p%40ss@127.0.0.1:${at.port}`, 6379),
    close: () => new Promise((closed) => server.close(() => closed())),
  };
}

test("distinguishes a silent server from a missing one", async () => {
  const address = await silentServer();
  assert.equal(address.password, "p@ss");
  try {
    await assert.rejects(
      exchange(address, "x", () => true, 50),
      NoResponseError,
    );
  } finally {
    await address.close();
  }
  await assert.rejects(
    exchange(address, "x", () => true, 1_000),
    /connection refused/,
  );
});

test("reports no response instead of an unreachable server when its process was blocked", async () => {
  const address = await silentServer();
  try {
    const answer = exchange(address, "x", () => true, 10);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    await assert.rejects(answer, NoResponseError);
  } finally {
    await address.close();
  }
});

test("reports a failed check as a finding and continues the others", async () => {
  const findings = await runChecks({} as DoctorContext, [
    { id: "broken", run: async () => Promise.reject(new Error("oops")) },
    { id: "fine", run: async () => [{ id: "fine", severity: "ok", message: "", fix: null }] },
  ]);
  assert.deepEqual(
    findings.map(({ id, severity }) => ({ id, severity })),
    [
      { id: "broken", severity: "error" },
      { id: "fine", severity: "ok" },
    ],
  );
});

test("suggests the supervisor's logs for a private server, and a manual start otherwise", () => {
  const kind = { id: "redis", name: "Redis", variable: "REDIS_URL", start: () => "start it" } as const;
  const address = addressOf("redis://h:1", 6379);
  assert.equal(unreachable(kind, address, "gone", true).fix, asTyped("parley logs --service redis --since 10m"));
  assert.equal(unreachable(kind, address, "gone", false).fix, "start it");
});

test("warns of allow rules that cover several tools, with what they do not cover", () => {
  const found = wildcardFinding({ allow: ["*", "exec(git *)"], guest_allow: ["mcp__a__*"] });
  assert.equal(found.severity, "warning");
  assert.match(found.message, /^allow "\*", guest_allow "mcp__a__\*": .*do not apply in tainted turns/);
  assert.equal(wildcardFinding({ allow: ["exec(git *)"], guest_allow: ["web_fetch"] }).severity, "ok");
});

test("names a stored secret that no service reads", () => {
  const found = unreadFinding("TELEGRAM_TOKEN", "/h/secrets.env");
  assert.equal(found.message, "TELEGRAM_TOKEN in /h/secrets.env is not passed to any service");
  assert.match(found.fix ?? "", /PARLEY_CHANNEL_… for channels/);
});

test("accepts secrets of the running gateway, also with a padded value, and proposes a restart for others", async () => {
  const home = mkdtempSync(join(tmpdir(), "parley-secrets-"));
  const gateway = spawn("sleep", ["300"], { env: { ...process.env, PARLEY_CHANNEL_ONE: "c2VjcmV0cw==" } });
  try {
    await once(gateway, "spawn");
    const settingsFile = join(home, "parley.toml");
    writeFileSync(settingsFile, webhookOf("one"));
    const state = { replicas: [{ httpPort: 1, process: { pid: gateway.pid } }], startedAt: new Date(0).toISOString() };
    const context = { settingsFile, io: { env: {} }, home: { path: home, state }, explicitUrl: false };
    const found = () => secrets(context as unknown as DoctorContext);
    assert.deepEqual(
      (await found()).map(({ severity }) => severity),
      ["ok"],
    );
    writeFileSync(settingsFile, webhookOf("one") + webhookOf("two"));
    const [missing] = await found();
    assert.match(missing?.message ?? "", /^PARLEY_CHANNEL_TWO is not set/);
    assert.match(missing?.fix ?? "", /^add PARLEY_CHANNEL_TWO=… to .*, then restart Parley$/);
    writeFileSync(join(home, "secrets.env"), "", { mode: 0o600 });
    const changed = secretsFile(context.home as unknown as DoctorContext["home"]).map(({ fix }) => fix);
    assert.deepEqual(changed, [null, "restart Parley"]);
  } finally {
    gateway.kill();
    rmSync(home, { recursive: true });
  }
});

const webhookOf = (name: string) => `[webhooks.${name}]\nsecret_env = "PARLEY_CHANNEL_${name.toUpperCase()}"\n`;

test("asks the server of the configured model, and reports a key that it refuses", () => {
  const server = (settings: string, env: Record<string, string>) => modelServer(parseSettings(settings, "t"), env);
  assert.equal(server("", {}), null);
  assert.equal(server("", { ANTHROPIC_API_KEY: "k" })?.url, "https://api.anthropic.com/v1/models");
  assert.equal(server('[agent]\nmodel = "claude-x"', {})?.keyVariable, "ANTHROPIC_API_KEY");
  const openai = server('[agent]\nmodel = "openai:gpt-5"', { OPENAI_API_KEY: "sk-secret" });
  assert.deepEqual([openai?.url, openai?.keyVariable], ["https://api.openai.com/v1/models", "OPENAI_API_KEY"]);
  const llm = '[llm.box]\nbase_url = "http://h:1/v1"\nmodel = "m"\n[agent]\nmodel = "box"';
  assert.deepEqual(server(llm, {}), {
    title: "http://h:1",
    url: "http://h:1/v1/models",
    headers: {},
    key: undefined,
    keyVariable: null,
  });
  assert.ok(openai);
  const refused = modelServerFinding(openai, 401, '{"error":{"message":"bad sk-secret"}}');
  assert.deepEqual([refused.severity, refused.message.includes("sk-secret")], ["error", false]);
  assert.match(modelServerFinding(openai, 200, "").message, /answers and accepts the key/);
  assert.equal(modelServerFinding({ ...openai, key: undefined }, 401, "").severity, "ok");
});

test("reports jobs that are overdue, failed or missed", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  const job = (more: Partial<store.Schedule>) =>
    ({
      id: "job-1",
      name: "report",
      enabled: true,
      nextDue: "2026-01-01T13:00:00Z",
      lastRun: null,
      ...more,
    }) as store.Schedule;
  const run = (outcome: "fired" | "missed" | "failed", state: "done" | "dead" | null = null): store.ScheduleRun => ({
    due: "2026-01-01T11:00:00Z",
    at: "2026-01-01T11:00:00Z",
    manual: false,
    outcome,
    reason: null,
    inboxId: null,
    state,
    turn: null,
  });
  const severity = (more: Partial<store.Schedule>) => scheduleFindings([job(more)], now)[0]?.severity;
  assert.equal(severity({}), "ok");
  assert.equal(severity({ lastRun: run("fired", "done") }), "ok");
  assert.equal(severity({ lastRun: run("fired", "dead") }), "warning");
  assert.equal(severity({ lastRun: run("missed") }), "warning");
  assert.equal(severity({ nextDue: "2026-01-01T11:00:00Z" }), "error");
  assert.equal(severity({ nextDue: "2026-01-01T11:00:00Z", enabled: false }), "ok");
  assert.match(
    scheduleFindings([job({ lastRun: run("failed") })], now)[0]?.fix ?? "",
    /^(?:npx )?parley cron history job-1 /,
  );
});

test("has a fix for every check that is not ok, without a cluster and with an unreachable gateway", async () => {
  const path = "/no/such/folder";
  const home = { path, state: null, abandoned: false } as unknown as DoctorContext["home"];
  const io = { env: {}, cwd: "/", stdin: process.stdin, stdout: process.stdout, stderr: process.stderr };
  const fail = async () => Promise.reject(new GatewayUnreachableError("no gateway answers"));
  for (const explicitUrl of [false, true]) {
    const context = { io, home, explicitUrl, settingsFile: null, status: fail, jobs: fail } as DoctorContext;
    const findings = await runChecks(context);
    const problems = findings.filter(({ severity }) => severity !== "ok");
    assert.ok(problems.length > 3);
    for (const { id, fix } of problems) assert.ok(fix !== null && fix.trim() !== "", id);
  }
});

test("names the account to correct when a channel cannot connect", () => {
  const gateway = (channelProblems: string) =>
    channelFindings([
      report({ service: "channel-gateway", details: { channels: channelProblems, channelProblems } }),
    ])[0]?.fix ?? "";
  assert.match(gateway("irc:main failing: 464 password incorrect"), /^(?:npx )?parley channels add irc:main /);
  assert.match(
    gateway("irc:main failing: connect ECONNREFUSED 127.0.0.1:6667"),
    /^(?:npx )?parley channels test irc:main .*check that its server runs/,
  );
  assert.match(
    gateway("telegram:main disabled: Unauthorized; irc:main failing: ECONNREFUSED"),
    /^(?:npx )?parley channels add telegram:main /,
  );
  assert.match(gateway("hook:build disabled: no secret; x:y disabled: z"), /^set the missing secrets/);
});

test("counts findings by severity in the singular and the plural", () => {
  const found = [ok("a", "fine"), error("b", "broken", "mend it"), ok("c", "fine"), warning("d", "old", "renew it")];
  const text = findingsText(found, plain);
  assert.match(text, /^✗ b {2}broken\n {5}fix: mend it$/m);
  assert.match(text, /\n2 ok, 1 warning, 1 error$/);
  assert.match(findingsText([ok("a", "fine")], plain), /\n1 ok, 0 warnings, 0 errors$/);
});

test("names the servers that are neither installed nor available from apt, with the command for them", async () => {
  const home = mkdtempSync(join(tmpdir(), "parley-doctor-"));
  const { code, stdout } = await parley(home, ["doctor"], { PATH: home }).outcome();
  rmSync(home, { recursive: true });
  assert.equal(code, 3);
  assert.match(stdout, /✗ servers +redis-server .* and nats-server .* are not installed.*\n +fix: Install redis/);
});
