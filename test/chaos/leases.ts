// Twenty-four leased accounts of seven platforms over four gateways, which are killed, paused and drained at random, while a fifth joins
// and leaves and people write. Every message is answered once and in order, every command runs once, no grant of a lease has two owners,
// a killed gateway's accounts are taken over quickly, and a joining gateway gets its share.
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startPostgres } from "@parley/local";
import { Cleanup, startTestCluster, temporaryFolder, type TestCluster } from "@parley/testing";
import { Client } from "pg";
import { healthPortOf, readMetrics } from "../e2e/support/metrics.ts";
import { startAccounts, type LeasedAccount } from "./leased-accounts.ts";
import { orderProblems, type StoredMessage } from "./order.ts";

const accounts = 24;
const gateways = 4;
/** Between two messages of one person, and between two faults. */
const writeEveryMs = 400;
const faultEveryMs = 6_000;
const faultKinds = ["kill", "pause", "drain", "join"] as const;
/** Every gateway has its share of the accounts, give or take one, within this time after another one has joined. */
const shareWithinMs = 30_000;
/** How long the gateways are observed before people write, and how much they may request from the store in a second then. */
const idleMs = 10_000;
const idleRequestsPerSecond = 20;
/** One in this many inputs is a command. */
const commandEvery = 8;
/** Longer than a lease lives. */
const pauseMs = 6_000;
/** How long the last answers may take. */
const settleMs = 60_000;

interface LeaseRun {
  /** How long people write and gateways fail. */
  seconds: number;
  /** Names of platforms; default: all. */
  platforms?: readonly string[] | undefined;
  /** Instead of `seconds`: gateways are only killed, until each platform has had this many takeovers. */
  takeovers?: number | undefined;
}

interface Takeover {
  channel: string;
  durationMs: number;
}

interface LeaseReport {
  problems: string[];
  messages: number;
  faults: number;
  /** Requests of all gateways to the store in a second, before people write. */
  idlePerSecond: number;
  /** From a gateway's death until another one holds each of its leases, shortest first. */
  takeovers: Takeover[];
  /** Answers whose send was interrupted: they may be missing. */
  unknown: number;
}

/** `report` gets a line for each fault. */
export async function runLeases(options: LeaseRun, report: (line: string) => void): Promise<LeaseReport> {
  await using cleanup = new Cleanup();
  const postgres = await startPostgres({ dataDir: join(await temporaryFolder(cleanup), "postgres") });
  cleanup.add(() => postgres.stop());
  const bots = await startAccounts(accounts, cleanup, options.platforms);
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
  // IRC and e-mail have no message from before an account was first connected, which its cursor tells.
  const unsaved = "SELECT count(*)::int AS open FROM parley.leases WHERE cursor IS NULL AND name ~ '^(irc|email):'";
  while ((await sql.query<{ open: number }>(unsaved)).rows[0]?.open !== 0) await delay(50);

  const idlePerSecond = await idleRequests(cluster);
  const watching = new AbortController();
  const watched = watchOwners(sql, watching.signal);
  const until = performance.now() + options.seconds * 1_000;
  const takeovers: Takeover[] = [];
  const shares: string[] = [];
  let faults = 0;
  const channels = new Set(bots.map(({ channel }) => channel));
  const isFinished = (): boolean => {
    const { takeovers: wanted } = options;
    if (wanted === undefined) return performance.now() > until;
    return [...channels].every((channel) => takeovers.filter((one) => one.channel === channel).length >= wanted);
  };
  const strikes = (async () => {
    while (!isFinished()) {
      await delay(faultEveryMs);
      faults += 1;
      const kind = options.takeovers === undefined ? faultKinds[randomInt(faultKinds.length)] : "kill";
      if (kind === "join") shares.push(...(await joinAndLeave(cluster, owners, report)));
      else takeovers.push(...(await strike(cluster, kind ?? "kill", owners, report)));
    }
  })();
  await Promise.all([strikes, ...bots.map((bot) => write(bot, isFinished))]);
  const problems = [...shares, ...(await settled(bots, sql)), ...(await commandProblems(bots, sql))];
  watching.abort();
  problems.push(...(await watched));
  if (idlePerSecond > idleRequestsPerSecond) problems.push(`idle gateways sent ${idlePerSecond} requests a second`);
  const { rows } = await sql.query<{ unknown: number }>(
    "SELECT count(*)::int AS unknown FROM parley.outbox WHERE state = 'unknown'",
  );
  return {
    problems,
    messages: bots.reduce((sum, { requested }) => sum + requested.length, 0),
    faults,
    idlePerSecond,
    takeovers: takeovers.toSorted((one, other) => one.durationMs - other.durationMs),
    unknown: rows[0]?.unknown ?? 0,
  };
}

async function write(account: LeasedAccount, isFinished: () => boolean): Promise<void> {
  const { name, say, requested, titles, minWriteMs: everyMs = writeEveryMs } = account;
  while (!isFinished()) {
    if (randomInt(commandEvery) === 0) {
      const title = `new-${name}-${titles.length}`;
      titles.push(title);
      await say(`/new ${title}`);
    } else {
      const text = `${name} ${requested.length}`;
      requested.push(text);
      await say(`say: ${text}`);
    }
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

/** One fault of a random gateway. Returns the takeovers after a kill. */
async function strike(
  cluster: TestCluster,
  kind: Exclude<(typeof faultKinds)[number], "join">,
  owners: () => Promise<Map<string, string>>,
  report: (line: string) => void,
): Promise<Takeover[]> {
  const replica = 1 + randomInt(gateways);
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
  const takeovers: Takeover[] = [];
  while (missing.size > 0) {
    await delay(25);
    const now = await owners();
    for (const [name, owner] of missing) {
      const current = now.get(name);
      if (current === undefined || current === owner) continue;
      missing.delete(name);
      takeovers.push({ channel: name.split(":")[0] ?? name, durationMs: performance.now() - startedMs });
    }
  }
  const longestMs = Math.round(Math.max(0, ...takeovers.map(({ durationMs }) => durationMs)));
  report(`gateway ${replica} killed: ${takeovers.length} accounts taken over within ${longestMs} ms`);
  return takeovers;
}

/** Requests of all gateways in a second while nobody writes. */
async function idleRequests(cluster: TestCluster): Promise<number> {
  const count = async () => {
    const replicas = Array.from({ length: gateways }, (_, index) => `channel-gateway-${index + 1}`);
    const samples = await Promise.all(
      replicas.map((name) => readMetrics(cluster, "channel-gateway", healthPortOf(cluster, name))),
    );
    const requests = samples.flatMap((each) => each.samples).filter(({ name }) => name === "parley_bus_requests_total");
    return requests.reduce((sum, { value }) => sum + value, 0);
  };
  const before = await count();
  await delay(idleMs);
  return Math.round(((await count()) - before) / (idleMs / 1_000));
}

/** Starts a fifth gateway, and removes it when all have their shares. Returns a problem when that takes too long. */
async function joinAndLeave(
  cluster: TestCluster,
  owners: () => Promise<Map<string, string>>,
  report: (line: string) => void,
): Promise<string[]> {
  const joining = gateways + 1;
  await cluster.scale("channel-gateway", joining);
  const startedMs = performance.now();
  const share = accounts / joining;
  const held = async () => {
    const names = [...(await owners()).values()];
    return Array.from(
      { length: joining },
      (_, index) => names.filter((owner) => owner.startsWith(`channel-gateway-${index + 1}/`)).length,
    );
  };
  const isShared = (counts: readonly number[]) =>
    counts.every((count) => count >= Math.floor(share) - 1 && count <= Math.ceil(share) + 1);
  let counts = await held();
  while (!isShared(counts) && performance.now() - startedMs < shareWithinMs) {
    await delay(50);
    counts = await held();
  }
  const tookMs = Math.round(performance.now() - startedMs);
  report(`gateway ${joining} joined: ${counts.join(", ")} accounts after ${tookMs} ms`);
  await cluster.scale("channel-gateway", gateways);
  report(`gateway ${joining} left`);
  return isShared(counts) ? [] : [`gateways held ${counts.join(", ")} accounts ${tookMs} ms after one joined`];
}

/** Commands that were not answered exactly once, or that had their effect several times. */
async function commandProblems(bots: readonly LeasedAccount[], sql: Client): Promise<string[]> {
  const { rows } = await sql.query<{ body: string }>("SELECT body FROM parley.outbox WHERE state = 'unknown'");
  const problems = await Promise.all(
    bots.map(async ({ channel, titles, answers }) => {
      const texts = await answers();
      return titles.flatMap((title) => {
        const isOfTitle = (text: string) => text.split(/[^\w-]/).includes(title);
        const count = texts.filter(isOfTitle).length;
        const isUnknown = count === 0 && rows.some(({ body }) => isOfTitle(body));
        return count === 1 || isUnknown ? [] : [`${channel}: ${count} answers to /new ${title}`];
      });
    }),
  );
  const { rows: twice } = await sql.query<{ title: string }>(
    "SELECT title FROM parley.sessions WHERE title LIKE 'new-%' GROUP BY title HAVING count(*) > 1",
  );
  return [...problems.flat(), ...twice.map(({ title }) => `several sessions were opened by /new ${title}`)];
}

/** Waits for the last answers; returns what was lost, doubled or out of order. */
async function settled(bots: readonly LeasedAccount[], sql: Client): Promise<string[]> {
  const deadline = performance.now() + settleMs;
  for (;;) {
    const { rows } = await sql.query<{ open: number }>(
      `SELECT (SELECT count(*) FROM parley.inbox WHERE state IN ('queued', 'claimed'))
            + (SELECT count(*) FROM parley.outbox WHERE state IN ('pending', 'sending')) AS open`,
    );
    const counts = await Promise.all(bots.map(async (bot) => (await answersOf(bot)).length));
    const answered = bots.every(({ requested }, index) => (counts[index] ?? 0) >= requested.length);
    const isFinished = answered && Number(rows[0]?.open) === 0 && (await commandProblems(bots, sql)).length === 0;
    if (isFinished || performance.now() > deadline) break;
    await delay(200);
  }
  const { rows } = await sql.query<{ account: string; body: string }>(
    "SELECT account, body FROM parley.outbox WHERE state = 'unknown'",
  );
  const { rows: inbox } = await sql.query<StoredMessage & { account: string }>(
    `SELECT account, parts::jsonb -> 0 ->> 'text' AS text, session_id::text AS session
       FROM parley.inbox ORDER BY received_at, seq`,
  );
  const stored = inbox.map((row) => ({ ...row, text: /say: (\S+ \d+)/.exec(row.text)?.[1] ?? "" }));
  const seen = await Promise.all(bots.map(answersOf));
  return bots.flatMap(({ channel, name, requested }, index) => {
    const doubtful = new Set(rows.filter(({ account }) => account === name).map(({ body }) => body));
    const answers = seen[index] ?? [];
    const lost = requested.filter(
      (text) => !answers.includes(text) && ![...doubtful].some((body) => body.includes(text)),
    );
    const doubled = answers.filter((text, at) => answers.indexOf(text) !== at);
    // Slack delivers an event that was not acknowledged after later ones, so there the order is that of the inbox.
    const own = stored.filter(({ account }) => account === name);
    const expected = channel === "slack" ? own.map(({ text }) => text) : requested;
    return [
      ...lost.map((text) => `lost on ${channel}: ${text}`),
      ...doubled.map((text) => `doubled on ${channel}: ${text}`),
      ...orderProblems(expected, own, answers).map((problem) => `${channel}:${name}: ${problem}`),
    ];
  });
}

/** The answers to the person's messages, without those to commands. */
async function answersOf({ name, answers }: LeasedAccount): Promise<string[]> {
  const texts = await answers();
  return texts.filter((text) => text.startsWith(`${name} `));
}
