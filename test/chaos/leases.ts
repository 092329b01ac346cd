// Twenty-four leased accounts of Telegram, Slack and Discord over four gateways, which are killed, paused and drained at random while people
// write. Every message is answered once and in order, no grant of a lease has two owners, and a killed gateway's accounts are taken over
// quickly.
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgres } from "@parley/local";
import {
  Cleanup,
  startDiscordPeer,
  startSlackPeer,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type TestCluster,
} from "@parley/testing";
import { Client } from "pg";

const accounts = 24;
const gateways = 4;
/** Between two messages of one person, and between two faults. */
const writeEveryMs = 400;
const faultEveryMs = 6_000;
/** Longer than a lease lives. */
const pauseMs = 6_000;
/** How long the last answers may take. */
const settleMs = 60_000;

interface LeaseReport {
  problems: string[];
  messages: number;
  faults: number;
  /** From a gateway's death until another one holds each of its leases, sorted. */
  takeoversMs: number[];
  /** Answers whose send was interrupted: they may be missing. */
  unknown: number;
}

/** Runs for `seconds`; `report` gets a line for each fault. */
export async function runLeases(seconds: number, report: (line: string) => void): Promise<LeaseReport> {
  await using cleanup = new Cleanup();
  const postgres = await startPostgres({ dataDir: join(await temporaryFolder(cleanup), "postgres") });
  cleanup.add(() => postgres.stop());
  const bots = await Promise.all(Array.from({ length: accounts }, (_, index) => startBot(index, cleanup)));
  const cluster = await startTestCluster(cleanup, {
    replicas: { "channel-gateway": gateways },
    processes: ["channel-gateway"],
    servers: { postgres },
    settings: `[session]\npolicy = "per_conversation"\n[queue]\nmode = "queue"\n${bots.map(({ settings }) => settings).join("")}`,
    env: { "channel-gateway": Object.fromEntries(bots.flatMap(({ env }) => Object.entries(env))) },
  });
  const sql = new Client({ connectionString: postgres.ownerUrl });
  await sql.connect();
  cleanup.add(() => sql.end());
  const owners = async () => {
    const { rows } = await sql.query<{ name: string; owner: string }>(
      "SELECT name, owner FROM parley.leases WHERE owner IS NOT NULL AND expires_at > now()",
    );
    return new Map(rows.map(({ name, owner }) => [name, owner]));
  };
  while ((await owners()).size < accounts) await delay(50);
  await Promise.all(bots.map((bot) => bot.connected()));

  const watching = new AbortController();
  const watched = watchOwners(sql, watching.signal);
  const until = performance.now() + seconds * 1_000;
  const takeoversMs: number[] = [];
  let faults = 0;
  const strikes = (async () => {
    while (performance.now() < until) {
      await delay(faultEveryMs);
      faults += 1;
      takeoversMs.push(...(await strike(cluster, owners, report)));
    }
  })();
  await Promise.all([strikes, ...bots.map((bot) => write(bot, until))]);
  const problems = await settled(bots, sql);
  watching.abort();
  problems.push(...(await watched));
  const { rows } = await sql.query<{ unknown: number }>(
    "SELECT count(*)::int AS unknown FROM parley.outbox WHERE state = 'unknown'",
  );
  return {
    problems,
    messages: bots.reduce((sum, { written }) => sum + written.length, 0),
    faults,
    takeoversMs: takeoversMs.toSorted((one, other) => one - other),
    unknown: rows[0]?.unknown ?? 0,
  };
}

interface Bot {
  channel: string;
  name: string;
  /** Its table in the settings, without previews: then a message that the platform shows is an answer. */
  settings: string;
  env: Record<string, string>;
  say: (text: string) => unknown;
  /** Resolves when a gateway receives what is written from now on. */
  connected: () => Promise<unknown>;
  /** The answers that people have seen, in order. */
  sent: () => string[];
  written: string[];
}

async function startBot(index: number, cleanup: Cleanup): Promise<Bot> {
  const name = `bot${index}`;
  const variable = `PARLEY_CHANNEL_BOT${index}`;
  const common = { name, written: [] };
  const table = (channel: string, settings: object) =>
    [`[channels.${channel}.${name}]`, "preview = false", ...toml({ token_env: variable, ...settings }), ""].join("\n");
  if (index % 3 === 0) {
    const peer = await startTelegramPeer({ token: `${7_000_001 + index}:AAStandInTokenOfAStandInBotForTests` });
    cleanup.add(() => peer.close());
    return {
      ...common,
      channel: "telegram",
      settings: table("telegram", { api_root: peer.url, owners: ["42"] }),
      env: { [variable]: peer.token },
      say: (text) => peer.say(text),
      // Telegram keeps messages for a day.
      connected: () => Promise.resolve(),
      sent: () => peer.sent.map(({ text }) => text),
    };
  }
  if (index % 3 === 1) {
    const peer = await startSlackPeer({ postRate: { burst: 1_000, everyMs: 1 } });
    cleanup.add(() => peer.close());
    return {
      ...common,
      channel: "slack",
      settings: table("slack", { app_token_env: `${variable}_APP`, api_root: peer.url, owners: ["U0ANN"] }),
      env: { [variable]: peer.tokens.bot, [`${variable}_APP`]: peer.tokens.app },
      say: (text) => peer.say(text),
      connected: () => peer.untilConnected(),
      sent: () => peer.sent.map(({ text }) => text),
    };
  }
  const peer = await startDiscordPeer();
  cleanup.add(() => peer.close());
  return {
    ...common,
    channel: "discord",
    settings: table("discord", { api_root: peer.url, owners: [peer.people.ann] }),
    env: { [variable]: peer.token },
    say: (text) => peer.say(text),
    connected: () => peer.until("a session", () => (peer.gateway.connected > 0 ? true : null)),
    sent: () => peer.sent.map(({ content }) => content),
  };
}

function toml(settings: object): string[] {
  return Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
}

async function write({ name, say, written }: Bot, until: number): Promise<void> {
  while (performance.now() < until) {
    const text = `${name} ${written.length}`;
    written.push(text);
    say(`say: ${text}`);
    await delay(writeEveryMs + randomInt(accounts * writeEveryMs));
  }
}

/** Reads the leases until `signal` aborts; returns those of which one grant had two owners, or whose fence went back. */
async function watchOwners(sql: Client, signal: AbortSignal): Promise<string[]> {
  const seen = new Map<string, { owner: string; fence: number }>();
  const problems: string[] = [];
  while (!signal.aborted) {
    const { rows } = await sql.query<{ name: string; owner: string; fence: number }>(
      "SELECT name, owner, fence::int AS fence FROM parley.leases WHERE owner IS NOT NULL",
    );
    for (const { name, owner, fence } of rows) {
      const before = seen.get(name);
      if (before !== undefined && (fence < before.fence || (fence === before.fence && owner !== before.owner)))
        problems.push(`${name}: fence ${fence} of ${owner} after fence ${before.fence} of ${before.owner}`);
      seen.set(name, { owner, fence });
    }
    await delay(20);
  }
  return problems;
}

/** One random fault. Returns the times of takeovers, in milliseconds. */
async function strike(
  cluster: TestCluster,
  owners: () => Promise<Map<string, string>>,
  report: (line: string) => void,
): Promise<number[]> {
  const replica = 1 + randomInt(gateways);
  const kind = ["kill", "pause", "drain"][randomInt(3)];
  if (kind === "pause") {
    await cluster.kill("channel-gateway", replica, "SIGSTOP");
    await delay(pauseMs);
    await cluster.kill("channel-gateway", replica, "SIGCONT");
    report(`gateway ${replica} paused`);
    return [];
  }
  if (kind === "drain") {
    await cluster.restart("channel-gateway", replica);
    report(`gateway ${replica} drained`);
    return [];
  }
  const before = await owners();
  const startedMs = performance.now();
  await cluster.kill("channel-gateway", replica, "SIGKILL");
  const missing = new Map([...before].filter(([, owner]) => owner.startsWith(`channel-gateway-${replica}/`)));
  const times: number[] = [];
  while (missing.size > 0) {
    await delay(25);
    const now = await owners();
    for (const [name, owner] of missing) {
      const current = now.get(name);
      if (current === undefined || current === owner) continue;
      missing.delete(name);
      times.push(performance.now() - startedMs);
    }
  }
  report(
    `gateway ${replica} killed: ${times.length} accounts taken over within ${Math.round(Math.max(0, ...times))} ms`,
  );
  return times;
}

/** Waits for the last answers; returns what was lost, doubled or out of order. */
async function settled(bots: readonly Bot[], sql: Client): Promise<string[]> {
  const deadline = performance.now() + settleMs;
  for (;;) {
    const { rows } = await sql.query<{ open: number }>(
      `SELECT (SELECT count(*) FROM parley.inbox WHERE state IN ('queued', 'claimed'))
            + (SELECT count(*) FROM parley.outbox WHERE state IN ('pending', 'sending')) AS open`,
    );
    const answered = bots.every(({ sent, written }) => sent().length >= written.length);
    if ((answered && Number(rows[0]?.open) === 0) || performance.now() > deadline) break;
    await delay(200);
  }
  const { rows } = await sql.query<{ account: string; body: string }>(
    "SELECT account, body FROM parley.outbox WHERE state = 'unknown'",
  );
  const { rows: stored } = await sql.query<{ account: string; text: string }>(
    "SELECT account, substr(parts::jsonb -> 0 ->> 'text', 6) AS text FROM parley.inbox ORDER BY seq",
  );
  return bots.flatMap(({ channel, name, sent, written }) => {
    const doubtful = new Set(rows.filter(({ account }) => account === name).map(({ body }) => body));
    const answers = sent();
    const lost = written.filter(
      (text) => !answers.includes(text) && ![...doubtful].some((body) => body.includes(text)),
    );
    const doubled = answers.filter((text, index) => answers.indexOf(text) !== index);
    // Slack delivers an event that was not acknowledged after later ones, so there the order is that of the inbox.
    const expected = channel === "slack" ? stored.flatMap((row) => (row.account === name ? [row.text] : [])) : written;
    const order = answers.map((text) => expected.indexOf(text));
    const isOrdered = order.every((place, index) => index === 0 || place >= (order[index - 1] ?? 0));
    return [
      ...lost.map((text) => `lost on ${channel}: ${text}`),
      ...doubled.map((text) => `doubled on ${channel}: ${text}`),
      ...(isOrdered ? [] : [`${channel}:${name}: answers out of order`]),
    ];
  });
}
