// What people are told of voice by itself. Pure.
import type { VoiceSession } from "@parley/contracts";

/** A start that nobody waits for any more has succeeded. */
export function listensText({ source }: VoiceSession): string {
  return `I am listening now (${source}). /voice stop ends it.`;
}

export function failedText(problem: string, heard: boolean): string {
  const what = heard ? "Voice has stopped" : "Voice could not be started";
  return `${what}: ${sentence(problem)} /voice start begins anew.`;
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
