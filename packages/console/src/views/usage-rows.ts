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
}

/** The sums of groups, in their order. */
export function byGroup(groups: NonNullable<Result<"usageGet">["groups"]>): GroupUsage[] {
  return groups.map((group) => ({ name: group.name, sessionId: group.sessionId, ...totalOf([group]) }));
}

/** One entry a model, the most expensive first. */
export function byModel(rows: readonly UsageRow[]): GroupUsage[] {
  const models = [...new Set(rows.map(({ model }) => model))];
  return models
    .map((model) => ({ name: model, sessionId: null, ...totalOf(rows.filter((row) => row.model === model)) }))
    .toSorted((a, b) => b.cost.micros - a.cost.micros || b.calls - a.calls);
}
