// Converts texts to vectors through an OpenAI-compatible server or Ollama.
import type { EmbedderSettings } from "@parley/contracts";
import { z } from "zod";

export interface Embedder {
  /** Vectors of different models are never compared. */
  readonly model: string;
  /** Maximum number of texts per request. */
  readonly batch: number;
  /** How long a search waits for the vector of its query. */
  readonly timeoutMs: number;
  /** One vector per text, in order. Throws EmbedderError, or the signal's reason. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** A failed embedding request. The message omits the server's own text, which might repeat the input. */
export class EmbedderError extends Error {
  override readonly name = "EmbedderError";
}

const Numbers = z.array(z.number()).min(1);
const OpenAiAnswer = z.object({ data: z.array(z.object({ index: z.number().int(), embedding: Numbers })) });
const OllamaAnswer = z.object({ embeddings: z.array(Numbers) });

/** `key`: undefined if the server requires none. */
export function httpEmbedder(settings: EmbedderSettings, key: string | undefined): Embedder {
  const { model, api, batch } = settings;
  const url = `${settings.url.replace(/\/+$/, "")}/${api === "ollama" ? "api/embed" : "embeddings"}`;
  return {
    model,
    batch,
    timeoutMs: settings.timeout_seconds * 1_000,
    async embed(texts, signal) {
      const response = await fetch(url, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({ model, input: texts }),
        signal,
      }).catch((error: unknown) => {
        throw signal.aborted ? signal.reason : new EmbedderError(`${url} does not respond`, { cause: error });
      });
      if (!response.ok) {
        await response.body?.cancel();
        throw new EmbedderError(`${url} answered ${response.status}`);
      }
      const body: unknown = await response.json().catch(() => undefined);
      // A response that the signal truncated is a timeout, not an invalid response.
      signal.throwIfAborted();
      const vectors = api === "ollama" ? fromOllama(body) : fromOpenAi(body);
      if (vectors?.length !== texts.length)
        throw new EmbedderError(`${url} returned ${vectors?.length ?? "no"} vectors for ${texts.length} texts`);
      return vectors.map((vector) => Float32Array.from(vector));
    },
  };
}

function fromOpenAi(body: unknown): number[][] | undefined {
  const answer = OpenAiAnswer.safeParse(body).data;
  return answer?.data.toSorted((one, other) => one.index - other.index).map(({ embedding }) => embedding);
}

function fromOllama(body: unknown): number[][] | undefined {
  return OllamaAnswer.safeParse(body).data?.embeddings;
}
