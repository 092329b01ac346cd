// Converts a text to an audio attachment: synthesizes it, stores it, and names it by its format.
import { storeBlob, type Bus } from "@parley/bus";
import type { Attachment, SpeechSettings } from "@parley/contracts";
import { SynthesisError, type Synthesizer } from "./synthesizer.ts";

/** File extensions by which chat platforms recognize the format. */
const extensions: Record<SpeechSettings["format"], string> = {
  opus: "ogg",
  mp3: "mp3",
  aac: "aac",
  flac: "flac",
  wav: "wav",
  pcm: "pcm",
};

export interface AudioFormatOf {
  text: string;
  voice?: string | undefined;
  signal: AbortSignal;
}

/** Null if the text contains nothing speakable. Throws SynthesisError, the store's WireError if it rejects the audio, or the signal's reason. */
export async function audioFormat(
  bus: Bus,
  synthesizer: Synthesizer,
  { text, voice, signal }: AudioFormatOf,
): Promise<Attachment | null> {
  const { max_characters: max, format } = synthesizer.settings;
  // Loaded with the first text: its Markdown parser takes 2 MiB of heap, and most sessions have no speech.
  const { speakable } = await import("./speakable.ts");
  const words = speakable(text, max);
  if (words === "") return null;
  const sound = await synthesizer.synthesize(words, { voice, signal });
  const blob = await storeBlob(bus, sound);
  if (blob.mediaType === "text/plain") {
    throw new SynthesisError("the speech service returned no audio", { again: false });
  }
  return { ...blob, name: `voice.${extensions[format]}` };
}
