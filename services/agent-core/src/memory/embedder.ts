// Texts to vectors, through any OpenAI-compatible server or Ollama.
import type { EmbedderSettings } from "@parley/contracts";
import { z } from "zod";

export interface Embedder {
  /** Vectors of different models are never compared. */
  readonly model: string;
  /** Texts of one request. */
  readonly batch: number;
  /** How long a search waits for its question's vector. */
  readonly timeoutMs: number;
  /** One vector a text, in their order. Throws EmbedderError, or the signal's reason. */
  embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

/** What the server answered, without its words: they might repeat the text. */
export class EmbedderError extends Error {
  override readonly name = "EmbedderError";
}

const Numbers = z.array(z.number()).min(1);
const OpenAiAnswer = z.object({ data: z.array(z.object({ index: z.number().int(), embedding: Numbers })) });
const OllamaAnswer = z.object({ embeddings: z.array(Numbers) });

/** `key`: undefined where the server wants none. */
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
        throw signal.aborted ? signal.reason : new EmbedderError(`${url} does not answer`, { cause: error });
      });
      if (!response.ok) {
        await response.body?.cancel();
        throw new EmbedderError(`${url} answered ${response.status}`);
      }
      const body: unknown = await response.json().catch(() => undefined);
      // Cut off in the middle it is late, and no wrong answer.
      signal.throwIfAborted();
      const vectors = api === "ollama" ? fromOllama(body) : fromOpenAi(body);
      if (vectors?.length !== texts.length)
        throw new EmbedderError(`${url} answered with ${vectors?.length ?? "no"} vectors for ${texts.length} texts`);
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
