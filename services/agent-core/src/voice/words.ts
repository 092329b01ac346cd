// What people are told of voice by itself. Pure.
import type { VoiceSession } from "@parley/contracts";
import { firstPace, steadyMs, type PaceSettings } from "./pace.ts";

/** A start that nobody waits for any more has succeeded. */
export function listensText({ source }: VoiceSession): string {
  return `I am listening now (${source}). /voice stop ends it.`;
}

export function failedText(problem: string, heard: boolean): string {
  const what = heard ? "Voice has stopped" : "Voice could not be started";
  return `${what}: ${sentence(problem)} /voice start begins anew.`;
}

/** Whether a server says by itself when it has heard something. */
export function paceText(pushed: boolean, settings: PaceSettings): string {
  const every = `every ${steadyMs({ ...firstPace, pushed }, settings) / 1_000} s`;
  return pushed
    ? `Pushed: it says when it has heard something; asked besides ${every}.`
    : `Polled: asked ${every} what it has heard.`;
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
