// Texts for times, sizes, tokens and money. Pure.
import type { Cost, Usage } from "@parley/contracts";

/** For example `850 ms`, `12.3 s`, `4 min 05 s`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3_600)} h ${String(Math.floor((seconds % 3_600) / 60)).padStart(2, "0")} min`;
}

/** As `duration`, in whole seconds: `32 s`, `4 min 05 s`. */
export function uptime(seconds: number): string {
  return seconds < 60 ? `${Math.floor(seconds)} s` : duration(seconds * 1_000);
}

/** `1 run`, `2 runs`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** How long ago: `now`, `5 min`, `3 h`, `2 d`. */
export function age(iso: string, nowMs: number): string {
  const seconds = Math.max(0, (nowMs - Date.parse(iso)) / 1_000);
  if (seconds < 45) return "now";
  if (seconds < 3_600) return `${Math.max(1, Math.round(seconds / 60))} min`;
  if (seconds < 86_400) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** For example `14:05` today, `3 Nov 14:05` on another day. */
export function clock(iso: string, now: Date): string {
  const date = new Date(iso);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (date.toDateString() === now.toDateString()) return time;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/** For example `950`, `12.4k`, `3.1M`. */
export function compact(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 1_000_000) return `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** For example `340 B`, `12 KB`, `4.2 MB`, `10.0 GB`. */
export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`;
  if (count < 1_048_576) return `${Math.round(count / 1_024)} KB`;
  if (count < 1_073_741_824) return `${(count / 1_048_576).toFixed(1)} MB`;
  return `${(count / 1_073_741_824).toFixed(1)} GB`;
}

/** For example `anthropic:claude-x`; a model that is its own provider has one name. */
export function modelName({ provider, model }: { provider: string; model: string }): string {
  return provider === model ? model : `${provider}:${model}`;
}

/** Dollars; calls without a known price stay unknown. */
export function money({ micros, unpricedCalls }: Cost): string {
  const dollars = micros / 1_000_000;
  const text = `$${dollars === 0 ? "0" : dollars.toFixed(dollars < 0.1 ? 4 : 2)}`;
  if (unpricedCalls === 0) return text;
  return micros === 0 ? "price unknown" : `${text} + unknown`;
}

/** The share of the prompt that the provider's cache served, 0 to 1; null without a prompt. */
export function cacheShare({ inputTokens, cacheReadTokens, cacheWriteTokens }: Usage): number | null {
  const all = inputTokens + cacheReadTokens + cacheWriteTokens;
  return all === 0 ? null : cacheReadTokens / all;
}

/** A field's name as words: `lastInAt` becomes `last in at`. */
export function words(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** The name of a replica without its process instance, which says nothing to a person. */
export function withoutInstance(replica: string): string {
  return replica.replaceAll(/\/[0-9a-f-]{36}/g, "");
}
