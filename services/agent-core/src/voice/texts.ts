// Voice notices for people. Pure.
import type { VoiceSession } from "@parley/contracts";
import { firstPace, steadyMs, type PaceSettings } from "./pace.ts";

/** Notice of a successful start for which no caller waits any more. */
export function listensText({ source }: VoiceSession): string {
  return `I am listening now (${source}). Stop with /voice stop.`;
}

export function failedText(problem: string, heard: boolean): string {
  const what = heard ? "Voice failed" : "Voice could not be started";
  return `${what}: ${sentence(problem)} Start again with /voice start.`;
}

/** Describes how updates arrive: by notification or by polling. */
export function paceText(pushed: boolean, settings: PaceSettings): string {
  const every = `every ${steadyMs({ ...firstPace, pushed }, settings) / 1_000} s`;
  return pushed ? `Updates: pushed by the server, and polled ${every}.` : `Updates: polled ${every}.`;
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
