// When a server that listens is asked again. It is asked by the clock, always; one that says by itself when it has heard something is asked
// then, and by the clock more seldom. Which of the two it is shows in what brought the last news, so a server whose word is not worth
// anything is asked as one that says nothing. Pure.
import type { VoiceNews, VoiceSettings } from "@parley/contracts";
import type { BegunVoice } from "./listener.ts";

export type PaceSettings = Pick<VoiceSettings, "poll_ms" | "push_poll_ms">;

/** Between two questions that the server itself asked for; it grows with each one in a row that brought nothing, up to this. */
const gap = { shortestMs: 50, longestMs: 500 };

export interface Pace {
  /** The last news were announced by the server. */
  pushed: boolean;
  /** Announcements in a row behind which there was nothing. */
  vain: number;
}

export const firstPace: Pace = { pushed: false, vain: 0 };

/** After a question. `announced`: the server asked for it; `found`: there was something new. */
export function paceAfter(pace: Pace, { announced, found }: { announced: boolean; found: boolean }): Pace {
  if (found) return { pushed: announced, vain: 0 };
  return { pushed: pace.pushed, vain: announced ? pace.vain + 1 : 0 };
}

/** Until it is asked by the clock. */
export function steadyMs({ pushed }: Pace, { poll_ms: pollMs, push_poll_ms: pushPollMs }: PaceSettings): number {
  return pushed ? Math.max(pollMs, pushPollMs) : pollMs;
}

/** The least time between two questions. */
export function gapMs({ vain }: Pace, { poll_ms: pollMs }: PaceSettings): number {
  return Math.min(gap.shortestMs * 2 ** Math.min(vain, 10), gap.longestMs, pollMs);
}

/** Whether what a tool-runner says is about this session. */
export function concerns({ runner, server, sttSessionId }: VoiceNews, voice: BegunVoice): boolean {
  if (voice.server !== server || (voice.runner !== null && voice.runner !== runner)) return false;
  return sttSessionId === null || sttSessionId === voice.sttSessionId;
}
