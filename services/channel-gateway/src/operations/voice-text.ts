// Texts of the /voice command. Pure.
import type { VoiceSession } from "@parley/contracts";
import { oneLine, pluralize } from "@parley/kit";
import { formatAge } from "./format.ts";

/** The result of /voice start. */
export function outcomeText(voice: VoiceSession): string {
  switch (voice.state) {
    case "listening":
      return `Listening to ${voice.source} through the MCP server ${voice.server ?? ""}. Each finished sentence is sent as your message; /voice stop ends it.`;
    case "starting":
      return "Voice is still starting. I will report the result here; /voice status shows the current state.";
    case "failed":
      return `Voice failed to start: ${sentence(voice.problem ?? "")}`;
    case "stopping":
    case "stopped":
      return "Voice was stopped before it started.";
    default:
      return voice.state satisfies never;
  }
}

export function stopText(voice: VoiceSession): string {
  const received = `${pluralize(voice.utterances, "utterance")} received.`;
  switch (voice.state) {
    case "stopping":
      return `Voice is stopping; ${received}`;
    case "failed":
      return `Voice had already failed: ${sentence(voice.problem ?? "")}`;
    default:
      return voice.problem === null ? `Voice stopped; ${received}` : `Voice stopped, but ${sentence(voice.problem)}`;
  }
}

/** `now`: milliseconds since 1970. */
export function statusText(voice: VoiceSession, now: number): string {
  const received = pluralize(voice.utterances, "utterance", "utterances");
  const since = formatAge(voice.startedAt, now);
  switch (voice.state) {
    case "starting":
      return `Voice is starting (${voice.source}).`;
    case "listening":
      return `Voice is listening to ${voice.source} through the MCP server ${voice.server ?? ""}, started ${since}; ${received}.`;
    case "stopping":
      return `Voice is stopping; ${received}.`;
    case "stopped": {
      const problem = voice.problem === null ? "" : ` ${sentence(voice.problem)}`;
      return `Voice is stopped; it was started ${since} and received ${received}.${problem}`;
    }
    case "failed":
      return `Voice failed after ${received}: ${sentence(voice.problem ?? "")}`;
    default:
      return voice.state satisfies never;
  }
}

export function eventLine({ seq, type, text, at }: { seq: number; type: string; text: string; at: string }): string {
  const detail = text === "" ? "" : `: ${oneLine(text, 200)}`;
  return `${seq}. ${at.slice(11, 19)} ${type}${detail}`;
}

/** `configured`: a speech service is configured. `sent`: answers are sent to this conversation instead of being read from the session. */
export function repliesText(on: boolean, { configured, sent }: { configured: boolean; sent: boolean }): string {
  if (!on) return "Answers are sent as text. /voice replies on also sends them as audio.";
  if (!configured) return "Spoken answers are on, but no speech service is configured: see [voice.speech].";
  const here = sent ? "" : " This client reads answers from the session, so it gets no audio; only chats do.";
  return `Each answer of this session is followed by an audio version. /voice replies off ends that.${here}`;
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
