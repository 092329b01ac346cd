// One Telegram account under flood control and two others, on four gateways that all send. The same texts are sent with and without
// flood control, in turn: no call of the limited account precedes Retry-After, none exceeds the rate, and the other accounts do not notice.
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { connectBus, type Bus } from "@parley/bus";
import { store, telegramChannel } from "@parley/contracts";
import { Cleanup, startTelegramPeer, startTestCluster, type TelegramPeer } from "@parley/testing";
import { createLogger } from "@parley/chassis";

const gateways = 4;
const chats = 200;
const textsPerChat = 5;
/** Flood control during a storm. */
const flood = { messages: 100, retryAfterSeconds: 2 };
/** Calls that were under way when the refusal was sent cannot be taken back; one that arrives later was made in spite of it. */
const underWayMs = 100;
/** How much the time between a claim and its call may differ from that of another call. */
const jitterMs = 250;
/** Between two texts of each other account. */
const otherEveryMs = 150;
const otherChats = 100;
const mostTimesSlower = 1.2;
const rounds = 2;

interface Phase {
  hasStorm: boolean;
  durationMs: number;
  /** Times between the storage of a text of another account and its arrival, shortest first. */
  otherMs: number[];
  limited: number;
  /** Calls that arrived before Retry-After: those that were under way, and the others. */
  underWay: number;
  early: number;
  /** How many calls of the limited account exceeded the rate within any period, without allowance for jitter. */
  mostAboveRate: number;
  problems: string[];
}

/** `report` gets a line for each phase. Returns what was wrong. */
export async function runStorm(report: (line: string) => void): Promise<string[]> {
  await using cleanup = new Cleanup();
  const names = ["limited", "other1", "other2"];
  const peers = await Promise.all(
    names.map((_, index) => startTelegramPeer({ token: `${7_000_001 + index}:AAStandInTokenOfAStandInBotForTests` })),
  );
  for (const peer of peers) cleanup.add(() => peer.close());
  const tables = peers.map(
    (peer, index) => `[channels.telegram.${names[index]}]
mode = "webhook"
token_env = "PARLEY_CHANNEL_BOT${index}"
webhook_secret_env = "PARLEY_CHANNEL_SECRET"
api_root = "${peer.url}"
`,
  );
  const cluster = await startTestCluster(cleanup, {
    replicas: { "channel-gateway": gateways },
    processes: ["channel-gateway"],
    settings: tables.join(""),
    env: {
      "channel-gateway": {
        PARLEY_CHANNEL_SECRET: "s3cret",
        ...Object.fromEntries(peers.map(({ token }, index) => [`PARLEY_CHANNEL_BOT${index}`, token])),
      },
    },
  });
  const bus = await connectBus({
    url: cluster.natsUrls["channel-gateway"],
    namespace: "parley",
    role: "channel-gateway",
    name: "storm",
    log: createLogger({ service: "chaos", replica: "storm", level: "silent" }),
  });
  cleanup.add(() => bus.drain());
  const phases: Phase[] = [];
  for (let round = 0; round < 2 * rounds; round++) {
    const phase = await play(bus, peers, { round, hasStorm: round % 2 === 1 });
    phases.push(phase);
    report(describe(phase));
  }
  const p95 = (hasStorm: boolean) =>
    percentile(
      phases.filter((phase) => phase.hasStorm === hasStorm).flatMap(({ otherMs }) => otherMs),
      0.95,
    );
  const [calm, storm] = [p95(false), p95(true)];
  report(
    `other accounts: p95 ${calm.toFixed(1)} ms, with the storm ${storm.toFixed(1)} ms (${(storm / calm).toFixed(2)}x)`,
  );
  const slower =
    storm > calm * mostTimesSlower ? [`other accounts were ${(storm / calm).toFixed(2)} times slower`] : [];
  return [...phases.flatMap(({ problems }) => problems), ...slower];
}

function describe(phase: Phase): string {
  const { hasStorm, durationMs, otherMs, limited, underWay, early, mostAboveRate } = phase;
  const at = (part: number) => percentile(otherMs, part).toFixed(1);
  return (
    `${hasStorm ? "storm" : "calm"}: ${chats * textsPerChat} texts in ${(durationMs / 1_000).toFixed(1)} s, refused ${limited} times; ` +
    `calls before Retry-After ${early}, under way at the refusal ${underWay}; above the rate ${Math.max(0, mostAboveRate)}; ` +
    `others p50 ${at(0.5)} ms, p95 ${at(0.95)} ms (${otherMs.length} texts)`
  );
}

async function play(
  bus: Bus,
  [limitedPeer, ...others]: readonly TelegramPeer[],
  { round, hasStorm }: { round: number; hasStorm: boolean },
): Promise<Phase> {
  if (limitedPeer === undefined) throw new Error("no account");
  limitedPeer.limit(hasStorm ? flood : null);
  const before = {
    calls: limitedPeer.calls.length,
    times: limitedPeer.limited.times,
    early: limitedPeer.limited.early.length,
  };
  const textsBefore = limitedPeer.sent.length;
  const beganMs = performance.now();
  for (let number = 0; number < textsPerChat; number++)
    await Promise.all(
      Array.from({ length: chats }, (_, chat) =>
        put(bus, "limited", 1_000 + chat, `round ${round} chat ${chat} text ${number}`),
      ),
    );
  const done = new AbortController();
  const measured = others.map((peer, index) => measure(bus, peer, `other${index + 1}`, round, done.signal));
  const wanted = textsBefore + chats * textsPerChat;
  while (limitedPeer.sent.length < wanted) await delay(50);
  const durationMs = performance.now() - beganMs;
  done.abort();
  const otherMs = (await Promise.all(measured)).flat().toSorted((one, other) => one - other);
  const early = limitedPeer.limited.early.slice(before.early);
  const late = early.filter(({ afterMs }) => afterMs > underWayMs);
  const calls = limitedPeer.calls.slice(before.calls).filter(({ method }) => method === "sendMessage");
  const { account: accountRate, conversations = [] } = telegramChannel.capabilities.rates ?? {};
  if (accountRate === undefined) throw new Error("Telegram has no rate of an account");
  const chatRate = conversations.find(({ pattern }) => pattern === "");
  const timesOf = (some: typeof calls) => some.map(({ atMs }) => atMs);
  const perChat = Object.values(Object.groupBy(calls, ({ parameters }) => String(parameters["chat_id"])));
  const excess = (allowanceMs: number) => [
    aboveRate(timesOf(calls), accountRate, allowanceMs),
    ...perChat.map((some) => (chatRate === undefined ? 0 : aboveRate(timesOf(some ?? []), chatRate, allowanceMs))),
  ];
  const name = `round ${round}`;
  return {
    hasStorm,
    durationMs,
    otherMs,
    limited: limitedPeer.limited.times - before.times,
    underWay: early.length - late.length,
    early: late.length,
    mostAboveRate: Math.max(...excess(0)),
    problems: [
      ...late.map(({ method, afterMs }) => `${name}: ${method} ${Math.round(afterMs)} ms after a refusal`),
      ...(Math.max(...excess(jitterMs)) > 0 ? [`${name}: calls above the rate`] : []),
      ...(hasStorm && limitedPeer.limited.times === before.times ? [`${name}: nothing was refused`] : []),
      ...orderProblems(limitedPeer, round),
    ],
  };
}

/** Texts that a chat got twice or out of order. */
function orderProblems(peer: TelegramPeer, round: number): string[] {
  const texts = peer.sent.map(({ text }) => text).filter((text) => text.startsWith(`round ${round} `));
  return Array.from({ length: chats }, (_, chat) => {
    const own = texts
      .filter((text) => text.startsWith(`round ${round} chat ${chat} `))
      .map((text) => text.split(" ").at(-1));
    return own.join() === Array.from({ length: textsPerChat }, (_, number) => number).join()
      ? []
      : [`chat ${chat} got texts ${own.join()}`];
  }).flat();
}

/** Writes to the chats of an account until `signal` aborts; returns how long each text took to arrive, in milliseconds. */
async function measure(
  bus: Bus,
  peer: TelegramPeer,
  account: string,
  round: number,
  signal: AbortSignal,
): Promise<number[]> {
  const stored = new Map<string, number>();
  for (let number = 0; !signal.aborted; number++) {
    const text = `${account} ${round} ${number}`;
    stored.set(text, performance.now());
    await put(bus, account, 1_000 + (number % otherChats), text);
    await delay(otherEveryMs);
  }
  const arrivals = () => peer.calls.filter(({ parameters }) => stored.has(String(parameters["text"])));
  await peer.until("the last texts", () => (arrivals().length >= stored.size ? true : null));
  return arrivals().map(({ parameters, atMs }) => atMs - (stored.get(String(parameters["text"])) ?? atMs));
}

async function put(bus: Bus, account: string, chat: number, text: string): Promise<void> {
  const address = { channel: "telegram", account, conversation: String(chat) };
  await bus.request(store.outboxPut, { opId: randomUUID(), outgoing: { address, text, expiresInMs: 600_000 } });
}

/** By how many calls a period exceeds its burst and its rate; at most 0: none does. */
function aboveRate(
  times: readonly number[],
  { burst, everyMs }: { burst: number; everyMs: number },
  allowanceMs: number,
) {
  let most = Number.NEGATIVE_INFINITY;
  for (const [from, fromMs] of times.entries())
    for (let to = from; to < times.length; to++) {
      const allowed = burst + 1 + ((times[to] ?? fromMs) - fromMs + allowanceMs) / everyMs;
      most = Math.max(most, Math.ceil(to - from + 1 - allowed));
    }
  return most;
}

function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
}
