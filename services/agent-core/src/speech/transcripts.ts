// Recordings in a turn's messages become text before the model is asked: a note for each, appended once and for all, so that a
// prompt stays what it was. A recording that cannot be understood is said to be so, and is not tried again.
import { fetchBlob, type Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { textOf, WireError, type Attachment, type Message } from "@parley/contracts";
import { TranscriptionError, type Transcriber } from "./transcriber.ts";

/** A note holds this much of a transcript. */
const maxCharacters = 20_000;

export interface TranscriptDeps {
  bus: Bus;
  log: Logger;
  /** Null: nobody is configured who understands speech. */
  transcriber: Transcriber | null;
}

/** Recordings of people that no note speaks of yet; pure. `messages`: of the running turn. */
export function recordingsIn(messages: readonly Message[]): Attachment[] {
  const notes = messages.flatMap((message) => (message.from === undefined ? [textOf(message.parts)] : []));
  const found = new Map<string, Attachment>();
  for (const message of messages) {
    if (message.role !== "user" || message.from === undefined) continue;
    for (const part of message.parts) {
      if (part.type !== "blob" || !isRecording(part.mediaType)) continue;
      if (!notes.some((text) => text.startsWith(beginningOf(part)))) found.set(part.sha256, part);
    }
  }
  return [...found.values()];
}

/** The notes for what nobody has listened to yet. Rejects only with the signal's reason, or when the store is away. */
export async function transcripts(
  deps: TranscriptDeps,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<string[]> {
  const { transcriber } = deps;
  if (transcriber === null) return [];
  return Promise.all(recordingsIn(messages).map((each) => noteFor(deps, transcriber, each, signal)));
}

async function noteFor(
  { bus, log }: TranscriptDeps,
  transcriber: Transcriber,
  recording: Attachment,
  signal: AbortSignal,
): Promise<string> {
  const begins = beginningOf(recording);
  try {
    const text = await transcriber.transcribe(recording, await fetchBlob(bus, recording.sha256), signal);
    if (text === "") return `${begins} nothing was said in it.]`;
    const cut = text.length > maxCharacters ? `${text.slice(0, maxCharacters).toWellFormed()} [cut]` : text;
    return `${begins} what was said follows.]\n${cut}`;
  } catch (error) {
    const gone = WireError.is(error, "NOT_FOUND", "INTERNAL");
    if (!(error instanceof TranscriptionError) && !gone) throw error;
    log.warn({ err: error, sha256: recording.sha256 }, "a recording could not be transcribed");
    const why = gone ? "it is gone" : error instanceof Error ? error.message : "";
    return `${begins} it could not be turned into text: ${why}. Say so, and ask for it in writing if you need it.]`;
  }
}

/** Voice messages are Ogg, and a browser's recordings WebM, which is a kind of video to those who read first bytes. */
function isRecording(mediaType: string): boolean {
  return mediaType.startsWith("audio/") || mediaType === "application/ogg" || mediaType === "video/webm";
}

function beginningOf({ sha256 }: Pick<Attachment, "sha256">): string {
  return `[Recording ${sha256.slice(0, 16)}:`;
}
