// Runs trials over the list of faults and summarises the results.
import { Cleanup } from "@parley/testing";
import { faults, type Fault } from "./faults.ts";
import { staleWrites, violations, type Violation } from "./invariants.ts";
import { startChaos, type Chaos } from "./setup.ts";
import { runTrial, type TrialResult } from "./trial.ts";

export interface Account {
  trials: number;
  lost: string[];
  doubled: string[];
  unknown: number;
  staleWrites: number;
  takeoverMs: { p50: number; p95: number; count: number };
  violations: Violation[];
}

export interface RunOptions {
  trials: number;
  /** Fraction of hints that get lost. */
  dropHints: number;
  /** Only faults whose name contains this text. */
  only?: string;
  /** Every nth fault of the list, for a short run that still includes every kind. */
  every?: number;
  report?: (result: TrialResult, number: number) => void;
}

/** When the leader dies, each turn of a trial in a model call may repeat one call; a paused leader and its successor may repeat two. */
const repeatsPerCrash = 20;

/**
 * Some faults need input that arrives while its turn runs: a trial without its fault is accounted for like any other, and made again. With
 * lost hints more often: when 30 % are lost, a fault that depends on one does not fire in 12 trials with a probability below 10^-6.
 */
const attempts = { allHints: 3, lostHints: 12 };

export async function run(options: RunOptions): Promise<Account> {
  await using cleanup = new Cleanup();
  const chaos = await startChaos(cleanup, { dropHints: options.dropHints });
  const chosen = choose(options);
  const results: TrialResult[] = [];
  const maxAttempts = options.dropHints === 0 ? attempts.allHints : attempts.lostHints;
  let repeats = 0;
  for (let number = 0; number < options.trials; number++) {
    const fault = chosen[number % chosen.length];
    if (fault === undefined) throw new Error(`no fault is called ${options.only ?? ""}`);
    for (let attempt = 1, fired = false; !fired; attempt++) {
      if (attempt > maxAttempts) throw new Error(`the fault ${fault.name} did not fire in ${maxAttempts} trials`);
      const result = await runTrial(chaos, fault).catch((error: unknown) => {
        throw new Error(`trial ${number + 1} (${fault.name}) did not settle`, { cause: error });
      });
      if (fault.crashesTurn) repeats += repeatsPerCrash;
      results.push(result);
      options.report?.(result, number + 1);
      fired = result.fired;
    }
  }
  return await summarise(chaos, results, repeats);
}

function choose({ only, every = 1 }: RunOptions): Fault[] {
  return faults
    .filter((fault) => only === undefined || fault.name.includes(only))
    .filter((_, index) => index % every === 0);
}

async function summarise(chaos: Chaos, results: TrialResult[], repeats: number): Promise<Account> {
  const takeovers = results.flatMap((result) => result.takeoverMs ?? []).sort((a, b) => a - b);
  const at = (share: number) =>
    Math.round(takeovers[Math.min(takeovers.length - 1, Math.floor(takeovers.length * share))] ?? 0);
  return {
    trials: results.length,
    lost: results.flatMap((result) => result.lost.map((what) => `${result.fault}: ${what}`)),
    doubled: results.flatMap((result) => result.doubled.map((what) => `${result.fault}: ${what}`)),
    unknown: results.reduce((sum, result) => sum + result.unknown, 0),
    staleWrites: await staleWrites(chaos),
    takeoverMs: { p50: at(0.5), p95: at(0.95), count: takeovers.length },
    violations: await violations(chaos, repeats),
  };
}
