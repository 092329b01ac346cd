// Text to speech, through any server of OpenAI's format.
import type { SpeechSettings } from "@parley/contracts";

export interface Synthesizer {
  readonly settings: SpeechSettings;
  /** The sound of a text. `voice`: another one than the settings name. Throws SynthesisError, or the signal's reason. */
  synthesize(text: string, options: { voice?: string | undefined; signal: AbortSignal }): Promise<Uint8Array>;
}

/** Why there is no sound, without the server's own words: they might repeat the key. */
export class SynthesisError extends Error {
  override readonly name = "SynthesisError";
  /** The same again may succeed. */
  readonly again: boolean;

  constructor(message: string, options: { again: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.again = options.again;
  }
}

/** `key`: undefined where the server wants none. */
export function httpSynthesizer(settings: SpeechSettings, key: string | undefined): Synthesizer {
  const url = `${settings.url.replace(/\/+$/, "")}/audio/speech`;
  return {
    settings,
    async synthesize(text, { voice = settings.voice, signal }) {
      signal.throwIfAborted();
      const timeout = AbortSignal.timeout(settings.timeout_seconds * 1_000);
      try {
        const response = await fetch(url, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          },
          body: JSON.stringify({ model: settings.model, input: text, voice, response_format: settings.format }),
          signal: AbortSignal.any([signal, timeout]),
        });
        if (!response.ok) {
          await response.body?.cancel();
          throw refused(response.status);
        }
        const sound = new Uint8Array(await response.arrayBuffer());
        if (sound.length > 0 && isSound(response.headers.get("content-type"))) return sound;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof SynthesisError) throw error;
        const why = timeout.aborted ? "did not answer in time" : "does not answer";
        throw new SynthesisError(`the speech service ${why}`, { again: true, cause: error });
      }
      throw new SynthesisError("the speech service gave an answer that is no sound", { again: false });
    },
  };
}

/** Too many requests, too slow and its own failures pass; a request it does not take stays wrong. */
function refused(status: number): SynthesisError {
  const again = status === 408 || status === 429 || status >= 500;
  return new SynthesisError(`the speech service answered ${status}`, { again });
}

/** Servers that fail say so in JSON or HTML, some of them with status 200. */
function isSound(contentType: string | null): boolean {
  return contentType === null || !/^(text\/|application\/json)/i.test(contentType);
}
