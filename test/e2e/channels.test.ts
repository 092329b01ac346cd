// Two gateways, each with some of the external connections. The holder of a connection is killed (-9) during a
// conversation: nothing is lost, nothing is sent twice, and the connection never has two owners.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  apiClient,
  Cleanup,
  startIi,
  startInspIrcd,
  startTelegramPeer,
  startTestCluster,
  type Ii,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";
import { Client } from "pg";

const cleanup = new Cleanup();
let cluster: TestCluster;
let telegram: TelegramPeer;
let ann: Ii;

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const irc = await startInspIrcd({ history: true });
  cleanup.add(() => irc.stop());
  ann = await startIi({ port: irc.port, nick: "ann", channels: ["#agents"] });
  cleanup.add(() => ann.quit());
  cluster = await startTestCluster(cleanup, {
    processes: ["channel-gateway"],
    model: true,
    replicas: { "channel-gateway": 2 },
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
allow_from = ["1"]
dm_policy = "pairing"
[channels.irc.net]
host = "127.0.0.1"
port = ${irc.port}
tls = false
nick = "parley"
groups = ["#agents"]
allow_from = ["ann"]
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token } },
  });
});
after(() => cleanup[Symbol.asyncDispose]());

async function query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
  const client = new Client({ connectionString: cluster.databaseUrl });
  await client.connect();
  try {
    return (await client.query(text, values)).rows as Row[];
  } finally {
    await client.end();
  }
}

interface Lease {
  holder: number;
  fence: number;
}

/** The gateway that holds a connection. */
async function leaseOf(name: string): Promise<Lease | undefined> {
  const rows = await query<{ owner: string | null; fence: string }>(
    "SELECT owner, fence FROM parley.leases WHERE name = $1",
    [name],
  );
  const match = /^channel-gateway-(\d+)/.exec(rows[0]?.owner ?? "");
  return match === null ? undefined : { holder: Number(match[1]), fence: Number(rows[0]?.fence) };
}

/** Kills the holder of a connection. Returns the milliseconds until the other gateway held it. */
async function killHolder(name: string): Promise<number> {
  const before = await leaseOf(name);
  assert.ok(before !== undefined, `nobody holds ${name}`);
  const begin = performance.now();
  await cluster.kill("channel-gateway", before.holder, "SIGKILL");
  for (;;) {
    const now = await leaseOf(name);
    if (now !== undefined && now.fence > before.fence) return performance.now() - begin;
    assert.ok(performance.now() - begin < 20_000, `${name} did not move`);
  }
}

describe("telegram", () => {
  // design: 004.21
  test("answers each message once and moves the connection within 5 s when its gateway is killed", async () => {
    const numbers = Array.from({ length: 30 }, (_, index) => index + 1);
    for (const number of numbers.slice(0, 15)) telegram.say(`say: answer ${number}.`, { from: 1 });
    await telegram.untilSent(5);
    const moved = killHolder("telegram:main");
    for (const number of numbers.slice(15)) telegram.say(`say: answer ${number}.`, { from: 1 });
    const movedMs = await moved;
    assert.ok(movedMs <= 5_000, `the connection moved after ${Math.round(movedMs)} ms`);

    const outcome = await settledOutbox("telegram", numbers.length);
    const answers = telegram.sent
      .map((message) => /answer (\d+)\./.exec(message.text)?.[1])
      .filter((each) => each !== undefined);
    assert.equal(new Set(answers).size, answers.length, "an answer was sent twice");
    const missing = numbers.filter((number) => !answers.includes(String(number)));
    assert.ok(missing.length <= outcome.unknown, `lost: ${missing.join()}`);
    assert.deepEqual(
      answers,
      [...answers].sort((a, b) => Number(a) - Number(b)),
      "out of order",
    );
    assert.equal(telegram.conflicts, 0, "two gateways polled at the same time");
  });

  test("sends one pairing code and forwards no text when an unknown contact writes", async () => {
    const before = cluster.strict?.requests.length;
    telegram.say("say: let me in", { from: 99 });
    telegram.say("say: let me in now", { from: 99 });
    const codes = await telegram.until("a pairing code", () => {
      const shown = telegram.sent.filter((message) => Number(message.chatId) === 99);
      return shown.length > 0 ? shown : null;
    });
    assert.equal(codes.length, 1);
    const rows = await query<{ n: number }>(
      "SELECT count(*)::int AS n FROM parley.inbox WHERE parts LIKE '%let me in%'",
    );
    assert.equal(rows[0]?.n, 0);
    assert.equal(cluster.strict?.requests.length, before);
  });
});

describe("irc", () => {
  test("sends the rest of a long text when somebody writes !more", async () => {
    await joined();
    const words = Array.from({ length: 800 }, (_, index) => `word${index}`);
    const address = { channel: "irc", account: "net", conversation: "#agents" };
    const body = JSON.stringify({ ...address, text: words.join(" ") });
    await apiClient(cluster.httpUrls, cluster.token).fetch("/api/send", { method: "POST", body });
    await ann.hear("#agents", /^\[\d+ more characters: !more\]$/);
    assert.ok(!ann.lines("#agents").some(({ text }) => text.includes("word799")));
    await ann.say("#agents", "parley: !more");
    await ann.hear("#agents", /word799$/);
    const received = ann.lines("#agents").flatMap(({ nick, text }) => (nick === "parley" ? text.split(" ") : []));
    assert.deepEqual(
      received.filter((word) => word.startsWith("word")),
      words,
    );
  });

  test("answers each addressed line of a channel once when its gateway is killed", async () => {
    await joined();
    for (const number of [1, 2, 3]) await ann.say("#agents", `parley: say: line ${number}.`);
    await ann.hear("#agents", /line 1\./);
    const moved = killHolder("irc:net");
    for (const number of [4, 5, 6]) await ann.say("#agents", `parley: say: line ${number}.`);
    assert.ok((await moved) <= 5_000);
    const outcome = await settledOutbox("irc", 6);
    const received = () =>
      ann
        .lines("#agents")
        .filter((line) => line.nick.startsWith("parley"))
        .flatMap((line) => /line (\d)\./.exec(line.text)?.[1] ?? []);
    if (outcome.unknown === 0) await ann.until("#agents", () => received().length >= 6);
    assert.equal(new Set(received()).size, received().length, `an answer was sent twice: ${received().join()}`);
    assert.ok(received().length >= 6 - outcome.unknown, `received only ${received().join()}`);
  });
});

/** Waits until all gateways are ready and the agent has joined: IRC delivers nothing to a user who has not joined. */
async function joined(): Promise<void> {
  for (const replica of [1, 2]) await cluster.whenReady("channel-gateway", replica);
  await ann.until("#agents", (lines) => comings(lines) > goings(ann.lines("")));
}

const comings = (lines: readonly { text: string }[]) =>
  lines.filter((line) => /parley.* has joined/.test(line.text)).length;
const goings = (lines: readonly { text: string }[]) =>
  lines.filter((line) => /parley.* has quit/.test(line.text)).length;

/** Waits until the given number of answers of a channel is sent, or marked as unknown. */
async function settledOutbox(channel: string, count: number): Promise<{ sent: number; unknown: number }> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const rows = await query<{ state: string; n: number }>(
      "SELECT state, count(*)::int AS n FROM parley.outbox WHERE channel = $1 AND turn_id IS NOT NULL GROUP BY state",
      [channel],
    );
    const of = (state: string) => rows.find((row) => row.state === state)?.n ?? 0;
    if (of("sent") + of("unknown") >= count) return { sent: of("sent"), unknown: of("unknown") };
    assert.ok(Date.now() < deadline, `outbox of ${channel}: ${JSON.stringify(rows)}`);
  }
}
