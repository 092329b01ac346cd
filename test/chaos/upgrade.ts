// An upgrade of a running cluster and the way back: the replicas of two versions work next to each other on one bus and one database while
// messages arrive. No message may be lost or doubled in any mixture of both.
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

/** The order of docs/deploy.md. Back: the reverse. */
const upgradeOrder: readonly ServiceName[] = ["store", "tool-runner", "agent-core", "channel-gateway"];
const replicasEach = 2;
/** Messages may wait for a restarted leader. */
const settleMs = 120_000;
/** A hand-over of the leader may repeat the model calls of its running turns. */
const repeatsPerRestart = 40;

export interface UpgradeOptions {
  from: Version;
  /** How long each mixture of versions works, in seconds; there are eight. */
  dwellSeconds: number;
  /** Plain messages a second, in addition to the trials. */
  rate: number;
  report: (line: string) => void;
}

interface UpgradeReport {
  problems: string[];
  messages: number;
  trials: number;
  /** Requests that were refused or broken off and therefore repeated with the same key. */
  repeated: number;
  /** The longest time between two accepted messages, in milliseconds. */
  longestGapMs: number;
  staleWrites: number;
  unknown: number;
}

export async function runUpgrade({ from, dwellSeconds, rate, report }: UpgradeOptions): Promise<UpgradeReport> {
  await using cleanup = new Cleanup();
  const versions = new ReplicaVersions(await temporaryFolder(cleanup));
  for (const [service, number] of eachReplica()) await versions.assign(service, number, from);
  const chaos = await startChaos(cleanup, { dropHints: 0, ...versions.startOptions(from) });
  report(`${from.name} runs`);

  const stopping = new AbortController();
  const load = sendMessages(chaos, rate, stopping.signal);
  const trials = repeatTrials(chaos, stopping.signal);
  // Both are awaited below; an earlier failure must not count as an unhandled rejection.
  for (const work of [load, trials]) work.catch(() => undefined);
  const running = Promise.race([load, trials]).then(() => undefined);
  running.catch(() => undefined);

  const log = join(chaos.cluster.home, "logs", "migrate-again.log");
  await migrate(
    migrationOf(thisVersion),
    { PATH: process.env["PATH"] ?? "", DATABASE_URL: chaos.cluster.databaseUrl },
    log,
    stopping.signal,
  );
  report("the database has the schema of this tree");
  const roll = async (service: ServiceName, to: Version): Promise<void> => {
    for (let number = 1; number <= replicasEach; number += 1) {
      await versions.assign(service, number, to);
      await Promise.race([chaos.cluster.restart(service, number), running]);
      // Half of the replicas first: both versions share the work.
      await Promise.race([delay((dwellSeconds * 1_000) / replicasEach), running]);
    }
    report(`${service}: ${to.name}`);
  };
  for (const service of upgradeOrder) await roll(service, thisVersion);
  for (const service of upgradeOrder.toReversed()) await roll(service, from);
  stopping.abort();
  const [sent, played] = await Promise.all([load, trials]);

  const restarts = 2 * replicasEach;
  // A busy machine still works on the last messages; the invariants hold once these are settled.
  const lost = await unsettled(chaos, sent.ids);
  const found = await violations(chaos, restarts * repeatsPerRestart);
  return {
    problems: [...lost, ...played.problems, ...found.map(({ invariant, what }) => `${invariant}: ${what}`)],
    messages: sent.ids.length,
    trials: played.count,
    repeated: sent.repeated,
    longestGapMs: sent.longestGapMs,
    staleWrites: await staleWrites(chaos),
    unknown: played.unknown,
  };
}

function* eachReplica(): Generator<[ServiceName, number]> {
  for (const service of services) for (let number = 1; number <= replicasEach; number += 1) yield [service, number];
}

interface Sent {
  /** Message ids with the text that each one requests. */
  ids: { id: string; text: string }[];
  repeated: number;
  longestGapMs: number;
}

/** Sends plain messages until the signal; each is repeated with its key until a gateway accepts it. */
async function sendMessages(chaos: Chaos, rate: number, stop: AbortSignal): Promise<Sent> {
  const sent: Sent = { ids: [], repeated: 0, longestGapMs: 0 };
  let acceptedAt = performance.now();
  const one = async (number: number): Promise<void> => {
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
        sent.longestGapMs = Math.max(sent.longestGapMs, Math.round(performance.now() - acceptedAt));
        acceptedAt = performance.now();
        return;
      }
      const reason = await response?.text();
      if (response !== undefined && response.status < 500) throw new Error(`${response.status}: ${reason}`);
      sent.repeated += 1;
      await delay(50);
    }
  };
  const open: Promise<void>[] = [];
  for (let number = 0; !stop.aborted; number += 1) {
    open.push(one(number));
    await delay(1_000 / rate);
  }
  await Promise.all(open);
  return sent;
}

interface Played {
  count: number;
  problems: string[];
  unknown: number;
}

/** The restarts are the fault: every answer must be exact. */
const upgrade: Fault = { name: "upgrade", crashesTurn: false };

async function repeatTrials(chaos: Chaos, stop: AbortSignal): Promise<Played> {
  const played: Played = { count: 0, problems: [], unknown: 0 };
  while (!stop.aborted) {
    const { lost, doubled, unknown } = await runTrial(chaos, upgrade);
    played.count += 1;
    played.unknown += unknown;
    played.problems.push(...lost.map((what) => `lost: ${what}`), ...doubled.map((what) => `doubled: ${what}`));
  }
  return played;
}

/** Messages whose turn did not end with the requested answer. */
async function unsettled(chaos: Chaos, ids: Sent["ids"]): Promise<string[]> {
  const problems: string[] = [];
  for (const { id, text } of ids) {
    const turn = await chaos.client.settled(id, settleMs);
    if (turn.text !== text) problems.push(`lost: ${text}: answered "${turn.text ?? ""}"`);
  }
  return problems;
}
