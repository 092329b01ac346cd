// Checks a turn's limits against what it has used so far, and writes the notice for its user; pure. Every limit produces a notice.
import type { ClaimedTurn, Cost, Finish, Usage } from "@parley/contracts";
import { pluralize } from "@parley/kit";

/** 0 = no limit. */
export interface Limits {
  maxIterations: number;
  maxToolCalls: number;
  /** Tokens of the turn: input and output, including cached ones. */
  maxTokens: number;
  /** Millionths of a US dollar: per turn, per agent tree, per day. */
  maxMicroUsd: number;
  maxTreeMicroUsd: number;
  maxMicroUsdPerDay: number;
  /** Of the session: model calls, and millionths of a US dollar with its sub-agents. */
  maxIterationsPerSession: number;
  maxMicroUsdPerSession: number;
  maxTurnMs: number;
  maxRoundsWithoutTools: number;
  maxRepeatedCalls: number;
}

export interface Progress {
  modelSteps: number;
  toolCalls: number;
  /** Since the turn's start, without the time it waited for people. */
  elapsedMs: number;
  usage: Usage;
  cost: Cost;
  treeMicroUsd: number;
  dayMicroUsd: number;
  /** What the session used before this turn. */
  earlierModelSteps: number;
  earlierMicroUsd: number;
  /** Consecutive rounds in which the loop continued without a tool call. */
  roundsWithoutTools: number;
  /** How many times in a row the last call had the same arguments and the same result. */
  repeatedCalls: number;
}

/** How long a turn has been active until `now` (ms since 1970); time spent waiting for people does not count. */
export function activeMs({ startedAt, waitedMs }: Pick<ClaimedTurn, "startedAt" | "waitedMs">, now: number): number {
  return Math.max(0, now - Date.parse(startedAt) - waitedMs);
}

/** The end of a turn that has reached a limit, or undefined. */
export function limitReached(limits: Limits, progress: Progress): Finish | undefined {
  const over = (limit: number, value: number) => limit > 0 && value >= limit;
  const tokens = tokensOf(progress.usage);
  const dollars = (value: number) => `$${(value / 1_000_000).toFixed(2)}`;
  if (over(limits.maxIterations, progress.modelSteps))
    return stopped("max_turns", `this took ${pluralize(progress.modelSteps, "step")}, the limit for one request`);
  if (over(limits.maxToolCalls, progress.toolCalls))
    return stopped("max_turns", `I used tools ${progress.toolCalls} times, the limit for one request`);
  if (over(limits.maxTurnMs, progress.elapsedMs)) {
    return stopped(
      "max_turns",
      `this took ${Math.round(progress.elapsedMs / 60_000)} minutes, the limit for one request`,
    );
  }
  if (over(limits.maxRoundsWithoutTools, progress.roundsWithoutTools))
    return stopped("max_turns", `I continued ${progress.roundsWithoutTools} times in a row without using a tool`);
  if (over(limits.maxRepeatedCalls, progress.repeatedCalls))
    return stopped("max_turns", `I made the same call ${progress.repeatedCalls} times in a row, with the same result`);
  if (over(limits.maxTokens, tokens))
    return stopped("max_budget", `this took ${tokens} tokens, the limit for one request`);
  if (over(limits.maxMicroUsd, progress.cost.micros) || over(limits.maxTreeMicroUsd, progress.treeMicroUsd)) {
    const spent = Math.max(progress.cost.micros, progress.treeMicroUsd);
    const limit = over(limits.maxMicroUsd, progress.cost.micros) ? limits.maxMicroUsd : limits.maxTreeMicroUsd;
    return stopped("max_budget", `this cost ${dollars(spent)}; the limit for one request is ${dollars(limit)}`);
  }
  const sessionSteps = progress.earlierModelSteps + progress.modelSteps;
  if (over(limits.maxIterationsPerSession, sessionSteps))
    return sessionEnded("max_turns", `it took ${sessionSteps} steps`, "max_iterations_per_session");
  const sessionMicroUsd = sessionCost(progress);
  if (over(limits.maxMicroUsdPerSession, sessionMicroUsd))
    return sessionEnded("max_budget", `it cost ${dollars(sessionMicroUsd)}`, "max_usd_per_session");
  if (over(limits.maxMicroUsdPerDay, progress.dayMicroUsd)) {
    return {
      state: "failed",
      exitReason: "max_budget",
      text: `I stopped here: today's budget (${dollars(limits.maxMicroUsdPerDay)}) is used up. It resets at midnight UTC; the operator can raise limits.max_usd_per_day.`,
    };
  }
  return undefined;
}

/** The setting whose token or money limit the turn has reached before its next step, or undefined. */
export function budgetReached(limits: Limits, progress: Progress): string | undefined {
  const { usage, cost, treeMicroUsd, dayMicroUsd } = progress;
  const over = (limit: number, value: number) => limit > 0 && value >= limit;
  if (over(limits.maxTokens, tokensOf(usage))) return "limits.max_tokens";
  if (over(limits.maxMicroUsd, cost.micros) || over(limits.maxTreeMicroUsd, treeMicroUsd)) return "limits.max_usd";
  if (over(limits.maxMicroUsdPerSession, sessionCost(progress))) return "limits.max_usd_per_session";
  return over(limits.maxMicroUsdPerDay, dayMicroUsd) ? "limits.max_usd_per_day" : undefined;
}

function sessionCost({ earlierMicroUsd, cost, treeMicroUsd }: Progress): number {
  return earlierMicroUsd + Math.max(cost.micros, treeMicroUsd);
}

/** The limit of a session lasts, so that "go on" would not help. */
function sessionEnded(exitReason: "max_turns" | "max_budget", what: string, setting: string): Finish {
  return {
    state: "failed",
    exitReason,
    text: `I stopped here: this conversation has reached its limit, ${what}. Start a new one with /new; the operator can raise limits.${setting}.`,
  };
}

function stopped(exitReason: "max_turns" | "max_budget", what: string): Finish {
  return {
    state: "failed",
    exitReason,
    text: `I stopped here: ${what}. Reply "go on" to continue.`,
  };
}

function tokensOf(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}

export interface Totals {
  modelSteps: number;
  toolCalls: number;
  usage: Usage;
  cost: Cost;
}

export class TurnUsage {
  #totals: Totals;

  constructor({ nextStep, modelSteps, usage, cost }: Pick<ClaimedTurn, "nextStep" | "modelSteps" | "usage" | "cost">) {
    this.#totals = { modelSteps, toolCalls: nextStep - 1 - modelSteps, usage, cost };
  }

  get totals(): Totals {
    return this.#totals;
  }

  /**
   * Adds a model call made for one of the turn's tool calls; the next commit returns totals that include it.
   * `costMicros` null: no price.
   */
  add(used: Usage, costMicros: number | null): void {
    const { usage, cost } = this.#totals;
    this.#totals = { ...this.#totals, usage: sum(usage, used), cost: withCall(cost, costMicros) };
  }

  /** A model's reply was committed with its calls: the store returned the totals of the whole turn. */
  committed({ usage, cost }: Pick<Totals, "usage" | "cost">, toolCalls: number): void {
    const before = this.#totals;
    this.#totals = { modelSteps: before.modelSteps + 1, toolCalls: before.toolCalls + toolCalls, usage, cost };
  }
}

function sum(one: Usage, other: Usage): Usage {
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cacheReadTokens: one.cacheReadTokens + other.cacheReadTokens,
    cacheWriteTokens: one.cacheWriteTokens + other.cacheWriteTokens,
  };
}

function withCall({ micros, unpricedCalls }: Cost, costMicros: number | null): Cost {
  return costMicros === null
    ? { micros, unpricedCalls: unpricedCalls + 1 }
    : { micros: micros + costMicros, unpricedCalls };
}
