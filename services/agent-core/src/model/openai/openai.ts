// Models with OpenAI's chat completions API: OpenAI, Ollama, vLLM, LM Studio, llama.cpp and compatible servers.
import { createOpenAiProvider, type OpenAiOptions, type RequestDraft } from "../openai-provider.ts";
import type { ModelProvider, ModelRequest } from "../provider.ts";
import { initialDialect, initialLimit, learnDialect, learnLimit, ShownKinds, type Sent } from "./dialect.ts";
import { ReplyBuilder } from "./reply.ts";
import { toRequest, type WireRequest } from "./wire.ts";

export function createOpenAi(options: OpenAiOptions): ModelProvider {
  const { baseUrl, model } = options;
  let knownLimit = initialLimit(baseUrl);
  let dialect = initialDialect(baseUrl);
  const shown = new ShownKinds();

  const draft = (request: ModelRequest): RequestDraft<WireRequest> => {
    let limit = knownLimit;
    return {
      body: () => toRequest(request, model, limit, dialect),
      correct(error, refused) {
        // llama.cpp returns a server error when a model does not support images.
        const taught = error.failure === "invalid" || error.failure === "server";
        const other = taught ? learnDialect(error.message, dialect, shown.without(sentIn(refused))) : undefined;
        if (other !== undefined) {
          dialect = other;
          return true;
        }
        const better = learnLimit(error.message, limit, refused[limit.field] ?? request.maxOutputTokens);
        if (better === undefined || error.retryable) return false;
        limit = better;
        if (better.lasting) knownLimit = better;
        return true;
      },
      answered: (body) => shown.add(sentIn(body)),
    };
  };
  return createOpenAiProvider(options, {
    path: "chat/completions",
    draft,
    builder: (ids) => new ReplyBuilder({ model, ...ids }),
  });
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
