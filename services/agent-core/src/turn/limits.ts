// When a turn has had enough, and what its user is told; pure. No limit ends in silence.
import type { ClaimedTurn, Cost, Finish, Usage } from "@parley/contracts";

/** 0 = no limit. */
export interface Limits {
  maxIterations: number;
  maxToolCalls: number;
  /** Tokens of the turn, in and out, cached ones included. */
  maxTokens: number;
  /** Millionths of a US dollar: of the turn, of the whole tree of agents it belongs to, of the day. */
  maxMicros: number;
  maxTreeMicros: number;
  maxMicrosPerDay: number;
  maxTurnMs: number;
  maxRoundsWithoutTools: number;
  maxRepeatedCalls: number;
}

export interface Progress {
  modelSteps: number;
  toolCalls: number;
  /** Since its start, without what people were waited for. */
  elapsedMs: number;
  usage: Usage;
  cost: Cost;
  treeMicros: number;
  dayMicros: number;
  /** Rounds in a row, up to now, in which the loop went on although no tool was called. */
  roundsWithoutTools: number;
  /** How often the last call came with the same arguments and the same result in a row. */
  repeatedCalls: number;
}

/** How long a turn has worked until `now` (ms since 1970): whoever answers late takes none of its time. */
export function workedMs({ startedAt, waitedMs }: Pick<ClaimedTurn, "startedAt" | "waitedMs">, now: number): number {
  return Math.max(0, now - Date.parse(startedAt) - waitedMs);
}

/** The end of a turn that has reached a limit, or undefined. */
export function limitReached(limits: Limits, progress: Progress): Finish | undefined {
  const over = (limit: number, value: number) => limit > 0 && value >= limit;
  const tokens = tokensOf(progress.usage);
  const dollars = (value: number) => `$${(value / 1_000_000).toFixed(2)}`;
  if (over(limits.maxIterations, progress.modelSteps))
    return stopped("max_turns", `this took ${progress.modelSteps} steps, the limit for one request`);
  if (over(limits.maxToolCalls, progress.toolCalls))
    return stopped("max_turns", `I used tools ${progress.toolCalls} times, the limit for one request`);
  if (over(limits.maxTurnMs, progress.elapsedMs)) {
    return stopped(
      "max_turns",
      `this took ${Math.round(progress.elapsedMs / 60_000)} minutes, the limit for one request`,
    );
  }
  if (over(limits.maxRoundsWithoutTools, progress.roundsWithoutTools))
    return stopped("max_turns", `I went on ${progress.roundsWithoutTools} times in a row without doing anything`);
  if (over(limits.maxRepeatedCalls, progress.repeatedCalls))
    return stopped("max_turns", `I made the same call ${progress.repeatedCalls} times in a row, with the same result`);
  if (over(limits.maxTokens, tokens))
    return stopped("max_budget", `this took ${tokens} tokens, the limit for one request`);
  if (over(limits.maxMicros, progress.cost.micros) || over(limits.maxTreeMicros, progress.treeMicros)) {
    const spent = Math.max(progress.cost.micros, progress.treeMicros);
    return stopped("max_budget", `this has cost ${dollars(spent)}, the limit for one request`);
  }
  if (over(limits.maxMicrosPerDay, progress.dayMicros)) {
    return {
      state: "failed",
      exitReason: "max_budget",
      text: `I stopped here: today's budget (${dollars(limits.maxMicrosPerDay)}) is used up. It begins anew at midnight UTC; whoever runs me can raise limits.max_usd_per_day.`,
    };
  }
  return undefined;
}

/** The setting whose tokens or money the turn has used up before its next step, or undefined. */
export function budgetReached(limits: Limits, { usage, cost, treeMicros, dayMicros }: Progress): string | undefined {
  const over = (limit: number, value: number) => limit > 0 && value >= limit;
  if (over(limits.maxTokens, tokensOf(usage))) return "limits.max_tokens";
  if (over(limits.maxMicros, cost.micros) || over(limits.maxTreeMicros, treeMicros)) return "limits.max_usd";
  return over(limits.maxMicrosPerDay, dayMicros) ? "limits.max_usd_per_day" : undefined;
}

function stopped(exitReason: "max_turns" | "max_budget", what: string): Finish {
  return {
    state: "failed",
    exitReason,
    text: `I stopped here: ${what}. Say "go on" if I should continue.`,
  };
}

function tokensOf(usage: Usage): number {
  return usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
}
