// Formats numbers, times and texts for people. Pure.
import type { Cost, Usage } from "@parley/contracts";

/** Formats a cost. Calls without a known price are counted separately, not treated as free. */
export function costText({ micros, unpricedCalls }: Cost): string {
  const dollars = micros / 1_000_000;
  const known = `$${dollars.toFixed(dollars !== 0 && dollars < 1 ? 4 : 2)}`;
  if (unpricedCalls === 0) return known;
  const unknown = `${unpricedCalls} ${unpricedCalls === 1 ? "call" : "calls"} of unknown price`;
  return micros === 0 ? unknown : `${known} and ${unknown}`;
}

export function tokensText(usage: Usage): string {
  const read = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return `${count(read)} tokens read (${count(usage.cacheReadTokens)} from the cache), ${count(usage.outputTokens)} written`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** The rounded age of an ISO 8601 time. */
export function formatAge(iso: string, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(iso)) / 1_000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3_600)} h ago`;
  return `${Math.round(seconds / 86_400)} days ago`;
}

/** The last eight characters of an id, for display. */
export function shortId(sessionId: string): string {
  return sessionId.slice(-8);
}
