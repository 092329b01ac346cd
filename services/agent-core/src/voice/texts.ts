// Voice notices for people. Pure.
import type { VoiceSession } from "@parley/contracts";

/** Notice of a successful start for which no caller waits any more. */
export function listensText({ source }: VoiceSession): string {
  return `I am listening now (${source}). Stop with /voice stop.`;
}

export function failedText(problem: string, started: boolean): string {
  const what = started ? "Voice failed" : "Voice could not be started";
  return `${what}: ${sentence(problem)} Start again with /voice start.`;
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
