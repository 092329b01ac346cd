// The faults, one per trial. The services name the fault points; an armed point fires once, in the first replica that
// reaches it.
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "node:net";
import type { Chaos } from "./setup.ts";

export interface Fault {
  name: string;
  /** Called before the trial's messages are sent. */
  arm?(chaos: Chaos): Promise<void>;
  /** Called while the messages are processed. */
  strike?(chaos: Chaos): Promise<void>;
  /** The trial has to stop a turn for the point to be reached. */
  stops?: boolean;
  /** Number of model calls that this fault may repeat. */
  crashesTurn: boolean;
}

const agentPoints = [
  "agent.before_claim",
  "agent.after_claim",
  "agent.before_model",
  "agent.mid_stream",
  "agent.before_commit",
  "agent.after_commit",
  "agent.before_tools",
  "agent.before_tool",
  "agent.after_append",
  "agent.before_park",
  "agent.after_park",
  "agent.after_tools",
];
const otherPoints = [
  "store.before_inbox",
  "store.after_inbox",
  "store.before_claim",
  "store.after_claim",
  "store.before_commit",
  "store.after_commit",
  "store.before_append",
  "store.after_append",
  "store.before_park",
  "store.after_park",
  "store.before_spawn",
  "store.after_spawn",
  "store.before_approval_request",
  "store.after_approval_request",
  "store.before_step_claim",
  "store.after_step_claim",
  "store.before_settle",
  "store.after_settle",
  "store.before_process_end",
  "store.after_process_end",
  "store.before_outbox_claim",
  "store.after_outbox_claim",
  "store.before_outbox_settle",
  "store.after_outbox_settle",
  "tool.before_claim",
  "tool.after_claim",
  "tool.running",
  "tool.before_settle",
  "tool.after_settle",
  "inbox.before_put",
  "inbox.after_put",
  "outbox.before_claim",
  "outbox.after_claim",
  "outbox.after_send",
  "outbox.after_settle",
];
const stoppingPoints = ["agent.before_finish", "agent.after_finish", "store.before_finish", "store.after_finish"];
const takeoverPoints = ["store.before_takeover", "store.after_takeover"];

const kill = (point: string, extra: Partial<Fault> = {}): Fault => ({
  name: `${point}:kill`,
  arm: (chaos) => chaos.cluster.fault(point, "kill"),
  crashesTurn: point.startsWith("agent."),
  ...extra,
});

/** Number of the leading replica, or undefined between two leaders. */
async function leaderNumber(chaos: Chaos): Promise<number | undefined> {
  const rows = await chaos.query<{ holder: string | null }>(
    "SELECT holder FROM parley.leadership WHERE name = 'agent-core'",
  );
  const match = /^agent-core-(\d+)\//.exec(rows[0]?.holder ?? "");
  return match === null ? undefined : Number(match[1]);
}

async function signalLeader(chaos: Chaos, signal: NodeJS.Signals): Promise<number | undefined> {
  const leader = await leaderNumber(chaos);
  if (leader !== undefined) await chaos.cluster.kill("agent-core", leader, signal);
  return leader;
}

export const faults: Fault[] = [
  ...agentPoints.map((point) => kill(point)),
  ...otherPoints.map((point) => kill(point)),
  ...stoppingPoints.map((point) => kill(point, { stops: true })),
  ...takeoverPoints.map((point) =>
    kill(point, { strike: async (chaos) => void (await signalLeader(chaos, "SIGKILL")), crashesTurn: true }),
  ),
  { name: "leader:kill", strike: async (chaos) => void (await signalLeader(chaos, "SIGKILL")), crashesTurn: true },
  { name: "leader:term", strike: async (chaos) => void (await signalLeader(chaos, "SIGTERM")), crashesTurn: true },
  {
    // A paused leader still trusts its lease when it resumes: only the epoch stops it.
    name: "leader:stop-and-continue",
    async strike(chaos) {
      const leader = await signalLeader(chaos, "SIGSTOP");
      await delay(3_000);
      if (leader !== undefined) await chaos.cluster.kill("agent-core", leader, "SIGCONT");
    },
    crashesTurn: true,
  },
  {
    name: "leader:blocked-loop",
    arm: (chaos) => chaos.cluster.fault("agent.before_model", "block:6000"),
    crashesTurn: true,
  },
  {
    // Without the lock a standby leads immediately while the old leader still works: two leaders.
    name: "two-leaders",
    strike: (chaos) => redisCommand(chaos.cluster.redisAdminUrl, "DEL", "parley:leader"),
    crashesTurn: true,
  },
  { name: "redis:flush", strike: (chaos) => redisCommand(chaos.cluster.redisAdminUrl, "FLUSHALL"), crashesTurn: true },
  { name: "redis:restart", strike: (chaos) => restarted(chaos.cluster.servers.redis), crashesTurn: true },
  { name: "nats:restart", strike: (chaos) => restarted(chaos.cluster.servers.nats), crashesTurn: true },
  { name: "postgres:restart", strike: (chaos) => chaos.restartPostgres(), crashesTurn: true },
  { name: "tool-runner:kill", strike: (chaos) => chaos.cluster.kill("tool-runner", 1, "SIGKILL"), crashesTurn: false },
  { name: "gateway:kill", strike: (chaos) => chaos.cluster.kill("channel-gateway", 1, "SIGKILL"), crashesTurn: false },
  { name: "gateway:term", strike: (chaos) => chaos.cluster.kill("channel-gateway", 2, "SIGTERM"), crashesTurn: false },
  { name: "store:kill", strike: (chaos) => chaos.cluster.kill("store", 1, "SIGKILL"), crashesTurn: false },
  {
    name: "store:stop-and-continue",
    async strike(chaos) {
      await chaos.cluster.kill("store", 1, "SIGSTOP");
      await delay(1_000);
      await chaos.cluster.kill("store", 1, "SIGCONT");
    },
    crashesTurn: false,
  },
  {
    name: "telegram:429",
    arm: async (chaos) => chaos.telegram.fail("sendMessage", { kind: "too_many", retryAfterSeconds: 1 }),
    crashesTurn: false,
  },
];

async function restarted(server: { restart(): Promise<unknown> } | null): Promise<void> {
  if (server === null) throw new Error("this server is not ours to restart");
  await server.restart();
}

export async function redisCommand(url: string, ...words: string[]): Promise<void> {
  await redisReply(url, ...words);
}

/** The reply to one command in Redis's own protocol, among those to the login and the end. */
export async function redisReply(url: string, ...words: string[]): Promise<string> {
  const { hostname, port, password } = new URL(url);
  const encode = (parts: string[]) =>
    `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join("")}`;
  const socket = connect(Number(port), hostname);
  socket.write(encode(["AUTH", decodeURIComponent(password)]) + encode(words) + encode(["QUIT"]));
  let reply = "";
  for await (const chunk of socket) reply += String(chunk);
  if (/^-/m.test(reply)) throw new Error(`redis: ${reply}`);
  return reply;
}
