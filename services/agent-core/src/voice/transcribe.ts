// Transcribes recordings in a turn's messages before the model call. Each gets one note, appended permanently, so that the prompt's
// prefix stays unchanged. A failed transcription is noted and not retried.
import { fetchBlob, type Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { ownToolName, textOf, WireError, type Attachment, type Message, type Part } from "@parley/contracts";
import { TranscriptionError, type Transcriber } from "./transcriber.ts";

/** Maximum characters of a transcript in a note. */
const maxCharacters = 20_000;

export interface TranscribeDeps {
  bus: Bus;
  log: Logger;
  /** Null if no transcription service is configured. */
  transcriber: Transcriber | null;
}

/** Recordings of people that have no note yet; pure. `messages`: of the running turn. */
export function audioParts(messages: readonly Message[]): Attachment[] {
  const notes = messages.flatMap((message) => (message.from === undefined ? [textOf(message.parts)] : []));
  const found = new Map<string, Attachment>();
  for (const file of messages.flatMap(filesOfPeople)) {
    if (!isRecording(file.mediaType)) continue;
    if (!notes.some((text) => text.startsWith(beginningOf(file)))) found.set(file.sha256, file);
  }
  return [...found.values()];
}

/** The files that people sent: with a message, or with an answer to a question of the agent. */
function filesOfPeople({ role, from, parts }: Message): Attachment[] {
  if (role === "user" && from === undefined) return [];
  return parts.flatMap((part: Part): readonly Attachment[] => {
    if (role === "user") return part.type === "blob" ? [part] : [];
    return part.type === "tool_result" && ownToolName(part.name) === "ask_user" ? (part.attachments ?? []) : [];
  });
}

/** The notes for recordings without one. Rejects only with the signal's reason, or if the store is unavailable. */
export async function transcribe(
  deps: TranscribeDeps,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<string[]> {
  const { transcriber } = deps;
  if (transcriber === null) return [];
  return Promise.all(audioParts(messages).map((each) => noteFor(deps, transcriber, each, signal)));
}

async function noteFor(
  { bus, log }: TranscribeDeps,
  transcriber: Transcriber,
  recording: Attachment,
  signal: AbortSignal,
): Promise<string> {
  const begins = beginningOf(recording);
  try {
    const text = await transcriber.transcribe(recording, await fetchBlob(bus, recording.sha256), signal);
    if (text === "") return `${begins} it contains no speech.]`;
    const cut = text.length > maxCharacters ? `${text.slice(0, maxCharacters).toWellFormed()} [truncated]` : text;
    return `${begins} transcript:]\n${cut}`;
  } catch (error) {
    const isMissing = WireError.is(error, "NOT_FOUND", "INTERNAL");
    if (!(error instanceof TranscriptionError) && !isMissing) throw error;
    log.warn({ err: error, sha256: recording.sha256 }, "recording not transcribed");
    const why = isMissing ? "the recording is no longer available" : error instanceof Error ? error.message : "";
    return `${begins} transcription failed: ${why}. Tell the person, and ask them to write the message if you need it.]`;
  }
}

/** Voice messages are Ogg; browser recordings are WebM, which content detection reports as video. */
function isRecording(mediaType: string): boolean {
  return mediaType.startsWith("audio/") || mediaType === "application/ogg" || mediaType === "video/webm";
}

function beginningOf({ sha256 }: Pick<Attachment, "sha256">): string {
  return `[Recording ${sha256.slice(0, 16)}:`;
}
