// Making a text an attachment that is heard: synthesised, kept in the store, named by what it is.
import { keepBlob, type Bus } from "@parley/bus";
import type { Attachment, SpeechSettings } from "@parley/contracts";
import { speakable } from "./speakable.ts";
import { SynthesisError, type Synthesizer } from "./synthesizer.ts";

/** What Telegram and others take a name's ending for. */
const extensions: Record<SpeechSettings["format"], string> = {
  opus: "ogg",
  mp3: "mp3",
  aac: "aac",
  flac: "flac",
  wav: "wav",
  pcm: "pcm",
};

export interface SoundOf {
  text: string;
  voice?: string | undefined;
  signal: AbortSignal;
}

/**
 * Null: the text holds nothing that could be said. Throws SynthesisError, the store's WireError for what it does not take, or the
 * signal's reason.
 */
export async function soundOf(
  bus: Bus,
  synthesizer: Synthesizer,
  { text, voice, signal }: SoundOf,
): Promise<Attachment | null> {
  const { max_characters: max, format } = synthesizer.settings;
  const words = speakable(text, max);
  if (words === "") return null;
  const sound = await synthesizer.synthesize(words, { voice, signal });
  const blob = await keepBlob(bus, sound);
  if (blob.mediaType === "text/plain") {
    throw new SynthesisError("the speech service gave an answer that is no sound", { again: false });
  }
  return { ...blob, name: `voice.${extensions[format]}` };
}
