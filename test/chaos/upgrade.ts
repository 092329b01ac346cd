// Upgrades a running cluster and rolls it back: replicas of two versions share one bus and one database while messages arrive. In no
// combination of versions may a message be lost or answered twice.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { services, type ServiceName } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { migrate } from "../../infra/local/src/supervisor/program.ts";
import type { Fault } from "./faults.ts";
import { staleWrites, violations } from "./invariants.ts";
import { startChaos, type Chaos } from "./setup.ts";
import { runTrial } from "./trial.ts";
import { migrationOf, ReplicaVersions, thisVersion, type Version } from "./versions.ts";

/** The order that docs/deploy.md prescribes; a rollback uses the reverse order. */
const upgradeOrder: readonly ServiceName[] = ["store", "tool-runner", "agent-core", "channel-gateway"];
/** Replicas of each service. */
const replicaCount = 2;
/** Maximum time for a message to be answered. Long, because its turn may wait for a restarted leader. */
const settleMs = 120_000;
/** Longer times without an accepted message are reported with the change that caused them. */
const reportedGapMs = 750;
/** Maximum repeated model calls per restart: a new leader repeats the calls of running turns. */
const repeatsPerRestart = 40;

export interface UpgradeOptions {
  from: Version;
  /** How long the cluster runs with each of the eight combinations of versions, in seconds. */
  dwellSeconds: number;
  /** Messages per second, in addition to those of the trials. */
  rate: number;
  report: (line: string) => void;
}

interface UpgradeReport {
  problems: string[];
  messages: number;
  trials: number;
  /** Requests that failed and were repeated with the same idempotency key. */
  repeated: number;
  /** The longest time between two accepted messages, in milliseconds. */
  longestGapMs: number;
  staleWrites: number;
  unknown: number;
}

/** Runs the upgrade and the rollback under load, and checks that no message was lost or answered twice. */
export async function runUpgrade({ from, dwellSeconds, rate, report }: UpgradeOptions): Promise<UpgradeReport> {
  await using cleanup = new Cleanup();
  const versions = new ReplicaVersions(await temporaryFolder(cleanup));
  for (const [service, number] of eachReplica()) await versions.assign(service, number, from);
  const chaos = await startChaos(cleanup, { dropHints: 0, ...versions.startOptions(from) });
  report(`${from.name} runs`);

  const stopping = new AbortController();
  let change = `${from.name} runs`;
  const gap = (ms: number) => report(`no message accepted for ${ms} ms: ${change}`);
  const load = sendMessages(chaos, rate, stopping.signal, gap);
  const trials = repeatTrials(chaos, stopping.signal);
  // Both are awaited only at the end; without these handlers, an earlier failure would end the process as an unhandled rejection.
  for (const task of [load, trials]) task.catch(() => undefined);
  const loadFailure = Promise.race([load, trials]).then(() => undefined);
  loadFailure.catch(() => undefined);

  const log = join(chaos.cluster.home, "logs", "migrate-again.log");
  await migrate(
    migrationOf(thisVersion),
    { PATH: process.env["PATH"] ?? "", DATABASE_URL: chaos.cluster.databaseUrl },
    log,
    stopping.signal,
  );
  report("the database has the schema of this tree");
  const upgradeService = async (service: ServiceName, to: Version): Promise<void> => {
    for (let number = 1; number <= replicaCount; number += 1) {
      await versions.assign(service, number, to);
      change = `${service}-${number} becomes ${to.name}`;
      await Promise.race([chaos.cluster.restart(service, number), loadFailure]);
      // Between two replicas of a service, both versions share its work.
      await Promise.race([delay((dwellSeconds * 1_000) / replicaCount), loadFailure]);
    }
    report(`${service}: ${to.name}`);
  };
  for (const service of upgradeOrder) await upgradeService(service, thisVersion);
  for (const service of upgradeOrder.toReversed()) await upgradeService(service, from);
  stopping.abort();
  const [sent, trialResults] = await Promise.all([load, trials]);

  const restarts = 2 * replicaCount;
  // The invariants hold only when the last messages are settled, which takes longer on a busy machine.
  const lost = await lostMessages(chaos, sent.ids);
  const violated = await violations(chaos, restarts * repeatsPerRestart);
  return {
    problems: [...lost, ...trialResults.problems, ...violated.map(({ invariant, what }) => `${invariant}: ${what}`)],
    messages: sent.ids.length,
    trials: trialResults.count,
    repeated: sent.repeated,
    longestGapMs: sent.longestGapMs,
    staleWrites: await staleWrites(chaos),
    unknown: trialResults.unknown,
  };
}

function* eachReplica(): Generator<[ServiceName, number]> {
  for (const service of services) for (let number = 1; number <= replicaCount; number += 1) yield [service, number];
}

interface SentMessages {
  /** Message ids with the text that each one requests. */
  ids: { id: string; text: string }[];
  repeated: number;
  longestGapMs: number;
}

/** Sends messages at a constant rate until the signal. Each is repeated with its idempotency key until a gateway accepts it. */
async function sendMessages(
  chaos: Chaos,
  rate: number,
  stop: AbortSignal,
  gap: (ms: number) => void,
): Promise<SentMessages> {
  const sent: SentMessages = { ids: [], repeated: 0, longestGapMs: 0 };
  let acceptedAt = performance.now();
  const sendOne = async (number: number): Promise<void> => {
    const text = `plain ${number} ${randomUUID().slice(0, 8)}`;
    const body = JSON.stringify({ conversation: `plain-${number % 10}`, text: `say: ${text}` });
    for (;;) {
      const response = await chaos.client
        .fetch("/api/messages", {
          method: "POST",
          headers: { "idempotency-key": text },
          body,
          signal: AbortSignal.timeout(10_000),
        })
        .catch(() => undefined);
      if (response?.status === 202) {
        const { messageId } = (await response.json()) as { messageId: string };
        sent.ids.push({ id: messageId, text });
        const gapMs = Math.round(performance.now() - acceptedAt);
        acceptedAt = performance.now();
        sent.longestGapMs = Math.max(sent.longestGapMs, gapMs);
        if (gapMs > reportedGapMs) gap(gapMs);
        return;
      }
      const reason = await response?.text();
      if (response !== undefined && response.status < 500) throw new Error(`${response.status}: ${reason}`);
      sent.repeated += 1;
      await delay(50);
    }
  };
  const requests: Promise<void>[] = [];
  for (let number = 0; !stop.aborted; number += 1) {
    requests.push(sendOne(number));
    await delay(1_000 / rate);
  }
  await Promise.all(requests);
  return sent;
}

interface TrialResults {
  count: number;
  problems: string[];
  unknown: number;
}

/** The fault of these trials. It crashes no turn, so every answer must be exact. */
const upgrade: Fault = { name: "upgrade", crashesTurn: false };

async function repeatTrials(chaos: Chaos, stop: AbortSignal): Promise<TrialResults> {
  const results: TrialResults = { count: 0, problems: [], unknown: 0 };
  while (!stop.aborted) {
    const { lost, doubled, unknown } = await runTrial(chaos, upgrade);
    results.count += 1;
    results.unknown += unknown;
    results.problems.push(...lost.map((what) => `lost: ${what}`), ...doubled.map((what) => `doubled: ${what}`));
  }
  return results;
}

/** Messages whose turn did not end with the requested answer. */
async function lostMessages(chaos: Chaos, ids: SentMessages["ids"]): Promise<string[]> {
  const problems: string[] = [];
  for (const { id, text } of ids) {
    const turn = await chaos.client.settled(id, settleMs);
    if (turn.text !== text) problems.push(`lost: ${text}: answered "${turn.text ?? ""}"`);
  }
  return problems;
}
