// Text to speech through an OpenAI-compatible server.
import type { SpeechSettings } from "@parley/contracts";

export interface Synthesizer {
  readonly settings: SpeechSettings;
  /** The audio of a text. `voice` overrides the settings. Throws SynthesisError, or the signal's reason. */
  synthesize(text: string, options: { voice?: string | undefined; signal: AbortSignal }): Promise<Uint8Array>;
}

/** Why synthesis failed, without the server's own text, which might repeat the key. */
export class SynthesisError extends Error {
  override readonly name = "SynthesisError";
  /** Whether a retry may succeed. */
  readonly again: boolean;

  constructor(message: string, options: { again: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.again = options.again;
  }
}

/** `key`: undefined if the server requires none. */
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
        const why = timeout.aborted ? "timed out" : "does not respond";
        throw new SynthesisError(`the speech service ${why}`, { again: true, cause: error });
      }
      throw new SynthesisError("the speech service returned no audio", { again: false });
    },
  };
}

/** Rate limits, timeouts and server errors are temporary; other rejections are permanent. */
function refused(status: number): SynthesisError {
  const again = status === 408 || status === 429 || status >= 500;
  return new SynthesisError(`the speech service returned status ${status}`, { again });
}

/** Servers report errors as JSON or HTML, some of them with status 200. */
function isSound(contentType: string | null): boolean {
  return contentType === null || !/^(text\/|application\/json)/i.test(contentType);
}
