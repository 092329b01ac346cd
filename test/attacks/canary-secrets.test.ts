// A marked secret in each place where one may enter. None of them may appear in a log, a trace, a metric, Redis, a payload of the bus, the
// database, or in what a command can read; also not after refusals and failures, which tend to report what was sent.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { services } from "@parley/contracts";
import { natsUsers, startNats, startRedis } from "@parley/local";
import {
  apiClient,
  Cleanup,
  pollUntil,
  startOtlpCollector,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type OtlpCollector,
  type TestCluster,
} from "@parley/testing";
import pg from "pg";
import { readMetrics } from "../e2e/support/metrics.ts";

const mark = "cAnArY";
let count = 0;
/** A new secret; the mark is what the test looks for. */
const secret = () => `${mark}${String(++count).padStart(2, "0")}${"x".repeat(24)}`;

const secrets = {
  anthropic: secret(),
  openai: secret(),
  embedder: secret(),
  telegram: `123456:${secret()}`,
  irc: secret(),
  webhook: secret(),
  exec: secret(),
  hook: secret(),
  mcpHeader: secret(),
  mcpKey: secret(),
  search: secret(),
  collector: secret(),
  wrongToken: secret(),
};

const cleanup = new Cleanup();
let cluster: TestCluster;
let collector: OtlpCollector;
let redisFolder: string;
/** Everything that was published on the bus. */
const payloads: string[] = [];
/** Passwords and tokens that the start creates, by what they are for. */
let created: Record<string, string>;

/** Resolves when everything that was published so far has been received. */
let received: () => Promise<void>;

/** Receives every message of the bus, as a user without limits. */
async function listen(url: string): Promise<void> {
  const { port, username, password } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  cleanup.add(async () => {
    socket.destroy();
  });
  const login = JSON.stringify({ verbose: false, pedantic: false, headers: true, user: username, pass: password });
  socket.write(`CONNECT ${login}\r\nSUB > 1\r\n`);
  const pings: (() => void)[] = [];
  let rest = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    payloads.push(part);
    const text = rest + part;
    rest = text.slice(-5);
    for (const [line] of text.matchAll(/PING\r\n|PONG\r\n/g)) {
      if (line.startsWith("PING")) socket.write("PONG\r\n");
      else pings.shift()?.();
    }
  });
  received = () =>
    new Promise((resolve) => {
      pings.push(resolve);
      socket.write("PING\r\n");
    });
  await received();
}

before(async () => {
  const users = [...natsUsers("parley"), { user: "listener", password: "listener" }];
  const nats = await startNats({ dataDir: join(await temporaryFolder(cleanup), "nats"), users });
  cleanup.add(() => nats.stop());
  redisFolder = join(await temporaryFolder(cleanup), "redis");
  const redis = await startRedis({ dataDir: redisFolder, namespace: "parley" });
  cleanup.add(() => redis.stop());
  await listen(nats.urlFor("listener"));
  collector = await startOtlpCollector();
  cleanup.add(() => collector.close());
  const telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  cluster = await startTestCluster(cleanup, {
    model: true,
    servers: { nats, redis },
    settings: `
[permissions]
contained = "allow"
[memory.embedder]
url = "http://127.0.0.1:9/v1"
model = "none"
key_env = "PARLEY_AGENT_EMBED"
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1"]
[channels.irc.net]
host = "127.0.0.1"
port = 9
tls = false
nick = "parley"
password_env = "PARLEY_CHANNEL_IRC"
[webhooks.build]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "github"
[tools.secrets.exec]
DEPLOY_KEY = { env = "PARLEY_TOOL_DEPLOY" }
[mcp.servers.tracker]
url = "http://127.0.0.1:9/mcp"
headers_env = { "X-Key" = "PARLEY_MCP_TRACKER" }
[[hooks]]
name = "notify"
event = "PostToolUse"
url = "http://127.0.0.1:9/hook"
token_env = "PARLEY_HOOK_NOTIFY"
`,
    env: {
      all: {
        PARLEY_LOG_LEVEL: "trace",
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_HEADERS: `authorization=${secrets.collector}`,
        OTEL_BSP_SCHEDULE_DELAY: "50",
        // The most that a trace can contain.
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
        PARLEY_TRACE_STORE: "true",
      },
      "agent-core": {
        ANTHROPIC_API_KEY: secrets.anthropic,
        OPENAI_API_KEY: secrets.openai,
        PARLEY_AGENT_EMBED: secrets.embedder,
      },
      "channel-gateway": {
        PARLEY_CHANNEL_TELEGRAM: secrets.telegram,
        PARLEY_CHANNEL_IRC: secrets.irc,
        PARLEY_CHANNEL_HOOK: secrets.webhook,
      },
      "tool-runner": {
        PARLEY_TOOL_DEPLOY: secrets.exec,
        PARLEY_HOOK_NOTIFY: secrets.hook,
        PARLEY_MCP_TRACKER: secrets.mcpHeader,
        PARLEY_MCP_KEY: secrets.mcpKey,
        BRAVE_API_KEY: secrets.search,
      },
    },
  });
  created = {
    "the token of the API": cluster.token,
    "the password of the database": new URL(cluster.given.postgres?.storeUrl ?? cluster.databaseUrl).password,
    "the password of Redis": new URL(redis.serviceUrl).password,
    ...Object.fromEntries(
      natsUsers("x").map(({ user }) => [`the NATS password of ${user}`, new URL(nats.urlFor(user)).password]),
    ),
  };
  await provoke();
});
after(() => cleanup[Symbol.asyncDispose]());

const ask = (text: string) => apiClient([cluster.httpUrl], cluster.token).ask(text);
let environment = "";

/** Work that succeeds, and the failures whose reports are the usual leaks. */
async function provoke(): Promise<void> {
  const command = "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; echo deploy with $DEPLOY_KEY";
  await ask(`tool: exec ${JSON.stringify({ command })}\nthen\nsay: done`);
  await received();
  environment = payloads.join("");
  await ask('tool: web_search {"query":"parley"}\nthen\nsay: searched');
  cluster.scripted?.failNext({ status: 401 });
  await ask("say: never").catch(() => undefined);
  const { httpUrl } = cluster;
  const wrong = { authorization: `Bearer ${secrets.wrongToken}` };
  assert.equal((await fetch(`${httpUrl}/api/sessions`, { headers: wrong })).status, 401);
  await fetch(`${httpUrl}/api/console/session`, {
    method: "POST",
    headers: { "content-type": "application/json", origin: httpUrl },
    body: JSON.stringify({ token: secrets.wrongToken }),
  });
  const forged = { "x-hub-signature-256": `sha256=${"0".repeat(64)}`, "content-type": "application/json" };
  await fetch(`${httpUrl}/hooks/build`, { method: "POST", headers: forged, body: "{}" });
  // The wrong token of Telegram is part of its URLs.
  while (!cluster.lines.some((line) => line.includes("account disabled"))) await delay(50);
}

/** Throws when a text contains one of the secrets. `where` names the place. */
function assertClean(where: string, text: string): void {
  const at = text.indexOf(mark);
  assert.equal(at, -1, `${where}: …${text.slice(Math.max(0, at - 200), at + 12)}…`);
  for (const [what, value] of Object.entries(created)) {
    const found = value === "" ? -1 : text.indexOf(value);
    assert.equal(found, -1, `${where} contains ${what}: …${text.slice(Math.max(0, found - 200), found)}…`);
  }
}

test("appears in no line of a log, at the level trace", () => {
  for (const service of services)
    assert.ok(
      cluster.lines.some((line) => line.startsWith(`${service}-1 `)),
      service,
    );
  assertClean("a log", cluster.lines.join("\n"));
});

test("appears in no span, although spans contain messages and results of tools", async () => {
  await pollUntil(() => JSON.stringify(collector.spans).includes("execute_tool exec"), "the span of the command");
  assertClean("a span", JSON.stringify(collector.spans));
});

test("appears in no metric", async () => {
  for (const service of services) assertClean(`a metric of ${service}`, (await readMetrics(cluster, service)).text);
});

test("appears in no command that Redis has ever executed", () => {
  const folder = join(redisFolder, "appendonlydir");
  const log = readdirSync(folder).map((file) => readFileSync(join(folder, file), "latin1"));
  assert.match(log.join(""), /parley:leader/);
  assertClean("Redis", log.join(""));
});

test("appears in no payload of the bus", () => {
  const text = payloads.join("");
  assert.match(text, /parley\.tool\.call\.exec/);
  assertClean("the bus", text);
});

test("appears in no table of the store, and tokens only as hashes", async () => {
  const client = new pg.Client(cluster.databaseUrl);
  await client.connect();
  cleanup.add(() => client.end());
  const { rows: tables } = await client.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = 'parley'::regnamespace AND relkind = 'r'",
  );
  assert.ok(tables.length > 20);
  for (const { name } of tables) {
    const { rows } = await client.query<{ text: string }>(`SELECT t::text AS text FROM parley.${name} t`);
    assertClean(`the table ${name}`, rows.map(({ text }) => text).join("\n"));
  }
});

test("is out of reach of a command, except for the one that it was given, which its output masks", () => {
  assert.match(environment, /PARLEY_CALL=/, "the command did not run");
  assert.match(environment, /deploy with /);
  assertClean("what the command printed", environment);
});
