// Speech to text through an OpenAI-compatible server.
import type { Attachment } from "@parley/contracts";
import { z } from "zod";

export interface Transcriber {
  /** The transcript of a recording. Throws TranscriptionError, or the signal's reason. */
  transcribe(
    recording: Pick<Attachment, "name" | "mediaType">,
    content: Uint8Array,
    signal: AbortSignal,
  ): Promise<string>;
}

/** Why transcription failed, without the server's own text, which might repeat the key. */
export class TranscriptionError extends Error {
  override readonly name = "TranscriptionError";
}

/** A service that transcribes as OpenAI's does. */
export interface TranscriptionService {
  url: string;
  model: string;
  language?: string | undefined;
  timeout_seconds: number;
}

const Answer = z.object({ text: z.string() });

/** `key`: undefined if the server requires none. */
export function httpTranscriber(settings: TranscriptionService, key: string | undefined): Transcriber {
  const url = `${settings.url.replace(/\/+$/, "")}/audio/transcriptions`;
  return {
    async transcribe({ name, mediaType }, content, signal) {
      const form = new FormData();
      form.append("file", new Blob([Uint8Array.from(content)], { type: mediaType }), fileName(name, mediaType));
      form.append("model", settings.model);
      form.append("response_format", "json");
      if (settings.language !== undefined) form.append("language", settings.language);
      // Encoded before the request: aborting while a form is being read causes an error that cannot be caught.
      const encoded = new Response(form);
      const body = await encoded.arrayBuffer();
      signal.throwIfAborted();
      const timeout = AbortSignal.timeout(settings.timeout_seconds * 1_000);
      const response = await fetch(url, {
        method: "POST",
        headers: {
          "content-type": encoded.headers.get("content-type") ?? "",
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
        body,
        signal: AbortSignal.any([signal, timeout]),
      }).catch((error: unknown) => {
        signal.throwIfAborted();
        const why = timeout.aborted ? "timed out" : "does not respond";
        throw new TranscriptionError(`the transcription service ${why}`, { cause: error });
      });
      const responseBody: unknown = await response.json().catch(() => undefined);
      signal.throwIfAborted();
      if (!response.ok) throw new TranscriptionError(`the transcription service returned status ${response.status}`);
      const answer = Answer.safeParse(responseBody);
      if (!answer.success) throw new TranscriptionError("the transcription service returned no transcript");
      return answer.data.text.trim();
    },
  };
}

/** Servers detect the format by the extension, which voice messages often lack. */
export function fileName(name: string, mediaType: string): string {
  if (/\.\w{2,5}$/.test(name)) return name;
  const subtype = (mediaType.split("/")[1] ?? "").replace(/^x-/, "");
  return `${name}.${subtype === "mpeg" ? "mp3" : subtype}`;
}
