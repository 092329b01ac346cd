// What /voice answers. Pure.
import type { VoiceSession } from "@parley/contracts";
import { ago, oneLine, some } from "../words.ts";

/** What became of a start. */
export function outcomeText(voice: VoiceSession): string {
  switch (voice.state) {
    case "listening":
      return `Listening: ${voice.source}, through the MCP server ${voice.server ?? ""}. Each sentence you finish is a message of yours; /voice stop ends it.`;
    case "starting":
      return "Still starting. I say here what comes of it; /voice status shows how it stands.";
    case "failed":
      return `Voice could not be started: ${sentence(voice.problem ?? "")}`;
    case "stopping":
    case "stopped":
      return "Voice was stopped before it began.";
    default:
      return voice.state satisfies never;
  }
}

export function stopText(voice: VoiceSession): string {
  const heard = `${some(voice.utterances, "utterance was", "utterances were")} heard.`;
  switch (voice.state) {
    case "stopping":
      return `Voice is being stopped; ${heard}`;
    case "failed":
      return `Voice had ended by itself: ${sentence(voice.problem ?? "")}`;
    default:
      return voice.problem === null ? `Voice is stopped; ${heard}` : `Voice is stopped, but ${sentence(voice.problem)}`;
  }
}

/** `now`: milliseconds since 1970. */
export function statusText(voice: VoiceSession, now: number): string {
  const heard = some(voice.utterances, "utterance", "utterances");
  const since = ago(voice.startedAt, now);
  switch (voice.state) {
    case "starting":
      return `Voice is being started (${voice.source}).`;
    case "listening":
      return `Voice is listening: ${voice.source}, through the MCP server ${voice.server ?? ""}, started ${since}; ${heard}.`;
    case "stopping":
      return `Voice is being stopped; ${heard}.`;
    case "stopped": {
      const problem = voice.problem === null ? "" : ` ${sentence(voice.problem)}`;
      return `Voice is stopped; it was started ${since} and heard ${heard}.${problem}`;
    }
    case "failed":
      return `Voice has ended by itself, having heard ${heard}: ${sentence(voice.problem ?? "")}`;
    default:
      return voice.state satisfies never;
  }
}

export function eventLine({ seq, type, text, at }: { seq: number; type: string; text: string; at: string }): string {
  const said = text === "" ? "" : `: ${oneLine(text, 200)}`;
  return `${seq}. ${at.slice(11, 19)} ${type}${said}`;
}

/** `configured`: there is somebody who speaks. `sent`: answers are sent to this conversation, not read from the session. */
export function repliesText(on: boolean, { configured, sent }: { configured: boolean; sent: boolean }): string {
  if (!on) return "Answers are written. /voice replies on has them spoken as well.";
  if (!configured) return "Answers would be spoken, but nobody is configured who speaks: see [voice.speech].";
  const here = sent ? "" : " Answers to you here are read from the session: only chats they are sent to get the sound.";
  return `Each answer of this session is followed by its sound. /voice replies off ends that.${here}`;
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
