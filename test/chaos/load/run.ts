// Plays scenes under a constant load and accounts for each of them.
import { setTimeout as delay } from "node:timers/promises";
import { Cleanup, type TelegramPeer } from "@parley/testing";
import { violations } from "../invariants.ts";
import type { Chaos } from "../setup.ts";
import { startLoad, type Load } from "./clients.ts";
import { sceneFigures, type SceneFigures } from "./figures.ts";
import { databaseTime, ledger, type Ledger } from "./ledger.ts";
import { missingAbility, playScene, type LoadScene, type SceneTarget } from "./scenes.ts";

/** A running cluster that receives the load, however it runs. */
export interface LoadCluster {
  target: SceneTarget;
  /** The address that clients use. */
  url: string;
  token: string;
  /** Without it, all messages are requests of OpenAI clients. */
  telegram?: TelegramPeer | undefined;
  query: Chaos["query"];
  /** How often the command of each message ran; a missing id: never. */
  effects(): Promise<ReadonlyMap<string, number>>;
}

export interface LoadRunOptions {
  /** Starts the cluster, or connects to it. */
  open(cleanup: Cleanup): Promise<LoadCluster>;
  scenes: readonly LoadScene[];
  /** Messages a second. */
  rate: number;
  /** How long each scene lasts, in seconds. */
  durationSeconds: number;
  report(result: SceneResult): void;
  /** Called for a scene that this cluster cannot play, with the reason. */
  skip(scene: LoadScene, reason: string): void;
}

export interface SceneResult extends SceneFigures, Ledger {
  scene: string;
}

/** The undisturbed time before each scene: a third of the scene, and at least 10 s. */
const quietMs = (durationMs: number) => Math.max(10_000, durationMs / 3);
/** The first answers fill caches and create sessions. */
const warmUpMs = 5_000;
/** A crash repeats the model calls of the turns that it interrupts; the rehearsal model does not count them. */
const unlimitedRepeats = Number.MAX_SAFE_INTEGER;

/** Resolves with everything that was wrong, one line each. */
export async function runLoadScenes(options: LoadRunOptions): Promise<string[]> {
  await using cleanup = new Cleanup();
  const cluster = await options.open(cleanup);
  const { url, token, telegram } = cluster;
  const load = startLoad({ url, token, rate: options.rate, telegram });
  await delay(warmUpMs);
  const problems: string[] = [];
  let staleBefore = 0;
  for (const scene of options.scenes) {
    const reason = missingAbility(scene, cluster.target);
    if (reason !== undefined) {
      options.skip(scene, reason);
      continue;
    }
    const result = await oneScene(cluster, load, scene, options.durationSeconds * 1_000);
    const staleWrites = result.staleWrites - staleBefore;
    staleBefore = result.staleWrites;
    options.report({ ...result, staleWrites });
    problems.push(
      ...[...result.lost, ...result.lostEffects].map((what) => `${scene.name}: lost: ${what}`),
      ...result.doubled.map((what) => `${scene.name}: doubled: ${what}`),
      ...(staleWrites === 0 ? [] : [`${scene.name}: ${staleWrites} stale writes`]),
    );
  }
  await load.stop();
  const found = await violations(cluster, unlimitedRepeats);
  return [...problems, ...found.map(({ invariant, what }) => `${invariant}: ${what}`)];
}

async function oneScene(cluster: LoadCluster, load: Load, scene: LoadScene, durationMs: number): Promise<SceneResult> {
  const quietFromMs = performance.now();
  await delay(quietMs(durationMs));
  const [fromMs, since] = [performance.now(), await databaseTime(cluster)];
  await playScene(scene, cluster.target, durationMs);
  const [toMs, until] = [performance.now(), await databaseTime(cluster)];
  await load.settled(toMs);
  const between = (from: number, to: number) =>
    load.samples.filter(({ sentAtMs }) => sentAtMs >= from && sentAtMs < to);
  const [before, during] = [between(quietFromMs, fromMs), between(fromMs, toMs)];
  return {
    scene: scene.name,
    ...sceneFigures(before, during),
    ...(await ledger(cluster, [...before, ...during], since, until)),
  };
}

/** One line for each scene. */
export function describeScene(result: SceneResult): string {
  const { p95BeforeMs: before, p95DuringMs: during, refusals, takeoversMs } = result;
  const refused = Object.entries(refusals).map(([status, count]) => `${count} × ${status}`);
  return [
    `${result.scene}: ${result.messages} messages`,
    `lost ${result.lost.length + result.lostEffects.length}, doubled ${result.doubled.length}, stale ${result.staleWrites}`,
    `p95 ${during.openai} ms (before ${before.openai} ms), Telegram ${during.telegram} ms (before ${before.telegram} ms)`,
    `repeated ${(result.repeatedShare * 100).toFixed(2)} %${refused.length === 0 ? "" : ` (${refused.join(", ")})`}`,
    `no message stored for ${result.longestGapMs} ms at most`,
    ...(takeoversMs.length === 0 ? [] : [`takeovers ${takeoversMs.map((ms) => `${ms} ms`).join(", ")}`]),
  ].join("; ");
}
