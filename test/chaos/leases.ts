// Twenty-four leased accounts of six platforms over four gateways, which are killed, paused and drained at random while people
// write. Every message is answered once and in order, no grant of a lease has two owners, and a killed gateway's accounts are taken over
// quickly.
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgres } from "@parley/local";
import { Cleanup, startTestCluster, temporaryFolder, type TestCluster } from "@parley/testing";
import { Client } from "pg";
import { startAccounts, type LeasedAccount } from "./leased-accounts.ts";

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
  const bots = await startAccounts(accounts, cleanup);
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
  // IRC has no message from before an account was first connected, which its cursor tells.
  const unsaved = "SELECT count(*)::int AS open FROM parley.leases WHERE cursor IS NULL AND name LIKE 'irc:%'";
  while ((await sql.query<{ open: number }>(unsaved)).rows[0]?.open !== 0) await delay(50);

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

async function write({ name, say, written, writesSlowly }: LeasedAccount, until: number): Promise<void> {
  const everyMs = writesSlowly === true ? 2 * writeEveryMs : writeEveryMs;
  while (performance.now() < until) {
    const text = `${name} ${written.length}`;
    written.push(text);
    await say(`say: ${text}`);
    await delay(everyMs + randomInt(accounts * everyMs));
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
async function settled(bots: readonly LeasedAccount[], sql: Client): Promise<string[]> {
  const deadline = performance.now() + settleMs;
  for (;;) {
    const { rows } = await sql.query<{ open: number }>(
      `SELECT (SELECT count(*) FROM parley.inbox WHERE state IN ('queued', 'claimed'))
            + (SELECT count(*) FROM parley.outbox WHERE state IN ('pending', 'sending')) AS open`,
    );
    const counts = await Promise.all(bots.map(async ({ sent }) => (await sent()).length));
    const answered = bots.every(({ written }, index) => (counts[index] ?? 0) >= written.length);
    if ((answered && Number(rows[0]?.open) === 0) || performance.now() > deadline) break;
    await delay(200);
  }
  const { rows } = await sql.query<{ account: string; body: string }>(
    "SELECT account, body FROM parley.outbox WHERE state = 'unknown'",
  );
  const { rows: stored } = await sql.query<{ account: string; text: string }>(
    "SELECT account, substr(parts::jsonb -> 0 ->> 'text', 6) AS text FROM parley.inbox ORDER BY seq",
  );
  const seen = await Promise.all(bots.map(async ({ sent }) => sent()));
  return bots.flatMap(({ channel, name, written }, index) => {
    const doubtful = new Set(rows.filter(({ account }) => account === name).map(({ body }) => body));
    const answers = seen[index] ?? [];
    const lost = written.filter(
      (text) => !answers.includes(text) && ![...doubtful].some((body) => body.includes(text)),
    );
    const doubled = answers.filter((text, at) => answers.indexOf(text) !== at);
    // Slack delivers an event that was not acknowledged after later ones, so there the order is that of the inbox.
    const expected = channel === "slack" ? stored.flatMap((row) => (row.account === name ? [row.text] : [])) : written;
    const order = answers.map((text) => expected.indexOf(text));
    const isOrdered = order.every((place, at) => at === 0 || place >= (order[at - 1] ?? 0));
    return [
      ...lost.map((text) => `lost on ${channel}: ${text}`),
      ...doubled.map((text) => `doubled on ${channel}: ${text}`),
      ...(isOrdered ? [] : [`${channel}:${name}: answers out of order`]),
    ];
  });
}
