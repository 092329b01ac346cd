// Wording of numbers, times and texts for people. Pure.
import type { Cost, Usage } from "@parley/contracts";

/** The beginning of a text, in one line. */
export function oneLine(text: string, maxCharacters: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = Array.from(line);
  return characters.length <= maxCharacters ? line : `${characters.slice(0, maxCharacters - 1).join("")}…`;
}

/** Money as far as it is known: calls of unknown price are counted, never taken for free. */
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

/** How long ago, roughly; ISO 8601 as input. */
export function ago(iso: string, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - Date.parse(iso)) / 1_000));
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129_600) return `${Math.round(seconds / 3_600)} h ago`;
  return `${Math.round(seconds / 86_400)} days ago`;
}

/** `1 message`, `2 messages`. */
export function some(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`;
}

/** By which a session is told from others: the last eight digits of its id. */
export function shortId(sessionId: string): string {
  return sessionId.slice(-8);
}
