// Models with OpenAI's Responses API. Unlike chat completions it returns the model's reasoning, encrypted, and accepts it back.
import { createOpenAiProvider, type OpenAiOptions, type RequestDraft } from "../openai-provider.ts";
import { ShownKinds } from "../openai/dialect.ts";
import type { ModelProvider, ModelRequest } from "../provider.ts";
import { initialDialect, isReasoningUnreadable, kindsIn, learnDialect } from "./dialect.ts";
import { ResponseBuilder } from "./reply.ts";
import { toRequest, type ResponsesRequest } from "./wire.ts";

export function createResponses(options: OpenAiOptions): ModelProvider {
  const { baseUrl, model, name = "openai" } = options;
  const origin = `${name}:${model}`;
  let dialect = initialDialect(baseUrl);
  const shown = new ShownKinds();

  const draft = (request: ModelRequest): RequestDraft<ResponsesRequest> => {
    let withReasoning = true;
    return {
      body: () => toRequest(request, { model, origin, withReasoning }, dialect),
      correct(error, refused) {
        if (error.failure !== "invalid") return false;
        if (isReasoningUnreadable(error.message, refused)) {
          withReasoning = false;
          return true;
        }
        const learned = learnDialect(error.message, dialect, refused, shown);
        if (learned === undefined) return false;
        dialect = learned;
        return true;
      },
      answered: (body) => shown.add(kindsIn(body)),
    };
  };
  return createOpenAiProvider(options, {
    path: "responses",
    draft,
    builder: (ids) => new ResponseBuilder({ model, origin, ...ids }),
  });
}
