// Models with OpenAI's chat completions API: OpenAI, Ollama, vLLM, LM Studio, llama.cpp and compatible servers. Client
// and stream parser are implemented here; retries, watchdogs and the loop are elsewhere.
import { randomUUID } from "node:crypto";
import type { Secret } from "@parley/chassis";
import { initialDialect, initialLimit, isOpenAi, learnDialect, learnLimit, type Sent } from "./dialect.ts";
import { rejectedRequest, transportError } from "./errors.ts";
import { ReplyBuilder } from "./reply.ts";
import { askJson, askNote, endpoint, findWindow, serverOf } from "./server.ts";
import { toRequest, type WireRequest } from "./wire.ts";
import { ModelError, type ModelProvider, type ModelRequest } from "../provider.ts";
import { receive } from "../sse.ts";

export interface OpenAiOptions {
  /** Self-hosted servers often need none. */
  apiKey?: Secret | undefined;
  /** Including `/v1`. */
  baseUrl: string;
  model: string;
  /** The provider's name. Default: `openai`. */
  name?: string;
  /** Default: the environment variables of `openai`. */
  keyVariable?: string | undefined;
  addressSetting?: string;
}

/** How often one request may be corrected after a refusal. */
const maxCorrections = 5;

export function createOpenAi(options: OpenAiOptions): ModelProvider {
  const server = serverOf(options);
  const official = isOpenAi(options.baseUrl);
  let knownLimit = initialLimit(options.baseUrl);
  let dialect = initialDialect(options.baseUrl);
  let note: string | null = null;

  /** A successful response. After a refusal the request is corrected where the error shows how. */
  const ask = async (request: ModelRequest, signal: AbortSignal): Promise<Response> => {
    let limit = knownLimit;
    for (let corrections = 0; ; corrections++) {
      const body = toRequest(request, options.model, limit, dialect);
      const response = await fetch(endpoint(options.baseUrl, "chat/completions"), {
        method: "POST",
        headers: { ...server.headers(), "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify(body),
        signal,
      });
      if (response.ok) return response;
      const error = rejectedRequest(response, await response.text(), server.addressSetting);
      if (corrections >= maxCorrections) throw error;
      // llama.cpp returns a server error when a model does not support images.
      const taught = error.failure === "invalid" || error.failure === "server";
      const other = taught ? learnDialect(error.message, dialect, sentIn(body)) : undefined;
      if (other !== undefined) {
        dialect = other;
        continue;
      }
      const better = learnLimit(error.message, limit, body[limit.field] ?? request.maxOutputTokens);
      if (better === undefined || error.retryable) throw error;
      limit = better;
      if (better.lasting) knownLimit = better;
    }
  };

  return {
    name: options.name ?? "openai",
    model: options.model,
    priceList: official ? "official" : "unknown",
    note: () => note,
    async prepare() {
      note = await askNote(server);
    },
    async stream(request, on, signal) {
      const builder = new ReplyBuilder({
        model: options.model,
        takenIds: callIds(request),
        newId: () => `call_${randomUUID().replaceAll("-", "")}`,
      });
      try {
        await receive(await ask(request, signal), builder, on, server.addressSetting);
      } catch (error) {
        signal.throwIfAborted();
        const failure = transportError(error);
        // A connection lost after the end of the answer loses only the usage.
        if (failure.failure !== "connection" || !builder.complete) throw failure.withKeyVariable(server.keyVariable);
      }
      signal.throwIfAborted();
      // A connection that closes cleanly in the middle looks like the end of the stream.
      if (!builder.complete) throw new ModelError("connection", "the model's stream ended in the middle of its answer");
      note = null;
      return builder.reply();
    },
    async size(signal) {
      if (official) return { contextTokens: null, maxOutputTokens: null };
      return findWindow(options.model, askJson(server, signal));
    },
  };
}

/** The fields of a request that a server may have refused. */
function sentIn(body: WireRequest): Sent {
  const kinds = new Set(
    body.messages.flatMap(({ content }) => (Array.isArray(content) ? content.map(({ type }) => type) : [])),
  );
  return {
    effort: body.reasoning_effort,
    images: kinds.has("image_url"),
    pdfs: kinds.has("file"),
    stream: body.stream,
    stops: body.stop !== undefined,
  };
}

/** Ids of the calls in the prompt. */
export function callIds(request: ModelRequest): string[] {
  return request.messages.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === "tool_call" ? [part.id] : [])),
  );
}
