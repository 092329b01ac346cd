// Computes when a voice server is polled next. Every server is polled by timer; one that sends notifications is polled on them too, and
// by timer less often. What led to the last new events decides, so unreliable notifications do not reduce polling. Pure.
import type { VoiceNews, VoiceSettings } from "@parley/contracts";
import type { BegunVoice } from "./poll-utterances.ts";

export type PaceSettings = Pick<VoiceSettings, "poll_ms" | "push_poll_ms">;

/** Bounds of the pause between polls on notifications; it grows with each consecutive poll without new events. */
const gap = { shortestMs: 50, longestMs: 500 };

export interface Pace {
  /** Whether a notification led to the last new events. */
  pushed: boolean;
  /** Number of consecutive notifications without new events. */
  vain: number;
}

export const firstPace: Pace = { pushed: false, vain: 0 };

/** The pace after a poll. `announced`: a notification caused the poll; `found`: it returned new events. */
export function paceAfter(pace: Pace, { announced, found }: { announced: boolean; found: boolean }): Pace {
  if (found) return { pushed: announced, vain: 0 };
  return { pushed: pace.pushed, vain: announced ? pace.vain + 1 : 0 };
}

/** Milliseconds until the next poll by timer. */
export function steadyMs({ pushed }: Pace, { poll_ms: pollMs, push_poll_ms: pushPollMs }: PaceSettings): number {
  return pushed ? Math.max(pollMs, pushPollMs) : pollMs;
}

/** Minimum milliseconds between two polls. */
export function gapMs({ vain }: Pace, { poll_ms: pollMs }: PaceSettings): number {
  return Math.min(gap.shortestMs * 2 ** Math.min(vain, 10), gap.longestMs, pollMs);
}

/** Whether a tool-runner's notification concerns this session. */
export function concerns({ runner, server, sttSessionId }: VoiceNews, voice: BegunVoice): boolean {
  if (voice.server !== server || (voice.runner !== null && voice.runner !== runner)) return false;
  return sttSessionId === null || sttSessionId === voice.sttSessionId;
}
