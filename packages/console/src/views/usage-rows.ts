// Sums of usage rows. Pure.
import type { Cost } from "@parley/contracts";
import type { Result } from "../api/http.ts";

export type UsageRow = Result<"usageGet">["rows"][number];

interface Sum {
  calls: number;
  /** All tokens of the prompt, from the cache or not. */
  promptTokens: number;
  cachedTokens: number;
  outputTokens: number;
  cost: Cost;
}

export interface DayUsage extends Sum {
  /** UTC, `YYYY-MM-DD`. */
  day: string;
}

const dayMs = 86_400_000;

export function totalOf(rows: readonly Pick<UsageRow, "calls" | "usage" | "cost">[]): Sum {
  const sum: Sum = {
    calls: 0,
    promptTokens: 0,
    cachedTokens: 0,
    outputTokens: 0,
    cost: { micros: 0, unpricedCalls: 0 },
  };
  for (const { calls, usage, cost } of rows) {
    sum.calls += calls;
    sum.promptTokens += usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
    sum.cachedTokens += usage.cacheReadTokens;
    sum.outputTokens += usage.outputTokens;
    sum.cost = {
      micros: sum.cost.micros + cost.micros,
      unpricedCalls: sum.cost.unpricedCalls + cost.unpricedCalls,
    };
  }
  return sum;
}

/** One entry a day, days without calls included, oldest first. */
export function byDay(rows: readonly UsageRow[], days: number, now: Date): DayUsage[] {
  return Array.from({ length: days }, (_, index) => {
    const day = new Date(now.getTime() - (days - 1 - index) * dayMs).toISOString().slice(0, 10);
    return { day, ...totalOf(rows.filter((row) => row.day === day)) };
  });
}

/** The sums of a model, a session or a channel. */
export interface GroupUsage extends Sum {
  name: string;
  /** Null: not a session. */
  sessionId: string | null;
  /** Milliseconds of a call; null: not recorded. */
  p50Ms: number | null;
  p95Ms: number | null;
}

/** The sums of groups, in their order. */
export function byGroup(groups: NonNullable<Result<"usageGet">["groups"]>): GroupUsage[] {
  return groups.map((group) => {
    const { name, sessionId, p50Ms = null, p95Ms = null } = group;
    return { name, sessionId, p50Ms, p95Ms, ...totalOf([group]) };
  });
}

/** The share of the prompt that came from the provider's cache, 0 to 1; null without a prompt. */
export function shareOf({ cachedTokens, promptTokens }: Pick<Sum, "cachedTokens" | "promptTokens">): number | null {
  return promptTokens === 0 ? null : cachedTokens / promptTokens;
}
