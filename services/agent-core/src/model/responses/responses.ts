// Models with OpenAI's Responses API. Unlike chat completions it returns the model's reasoning, encrypted, and accepts it back.
import { randomUUID } from "node:crypto";
import { isOpenAi } from "../openai/dialect.ts";
import { rejectedRequest, transportError } from "../openai/errors.ts";
import { callIds, type OpenAiOptions } from "../openai/openai.ts";
import { askJson, askNote, endpoint, findWindow, serverOf } from "../openai/server.ts";
import { ModelError, type ModelProvider, type ModelRequest } from "../provider.ts";
import { receive } from "../sse.ts";
import { initialDialect, isReasoningUnreadable, learnDialect } from "./dialect.ts";
import { ResponseBuilder } from "./reply.ts";
import { toRequest } from "./wire.ts";

/** How often one request may be corrected after a refusal. */
const maxCorrections = 5;

export function createResponses(options: OpenAiOptions): ModelProvider {
  const { baseUrl, model, name = "openai" } = options;
  const server = serverOf(options);
  const official = isOpenAi(baseUrl);
  const origin = `${name}:${model}`;
  let dialect = initialDialect(baseUrl);
  let note: string | null = null;

  /** A successful response. After a refusal the request is corrected where the error shows how. */
  const ask = async (request: ModelRequest, signal: AbortSignal): Promise<Response> => {
    let withReasoning = true;
    for (let corrections = 0; ; corrections++) {
      const body = toRequest(request, { model, origin, withReasoning }, dialect);
      const response = await fetch(endpoint(baseUrl, "responses"), {
        method: "POST",
        headers: { ...server.headers(), "content-type": "application/json", accept: "text/event-stream" },
        body: JSON.stringify(body),
        signal,
      });
      if (response.ok) return response;
      const error = rejectedRequest(response, await response.text(), server.addressSetting);
      if (corrections >= maxCorrections || error.failure !== "invalid") throw error;
      if (isReasoningUnreadable(error.message, body)) {
        withReasoning = false;
        continue;
      }
      const learned = learnDialect(error.message, dialect, body);
      if (learned === undefined) throw error;
      dialect = learned;
    }
  };

  return {
    name,
    model,
    priceList: official ? "official" : "unknown",
    note: () => note,
    async prepare() {
      note = await askNote(server);
    },
    async stream(request, on, signal) {
      const newId = () => `call_${randomUUID().replaceAll("-", "")}`;
      const builder = new ResponseBuilder({ model, origin, takenIds: callIds(request), newId });
      try {
        await receive(await ask(request, signal), builder, on, server.addressSetting);
      } catch (error) {
        signal.throwIfAborted();
        throw transportError(error).withKeyVariable(server.keyVariable);
      }
      signal.throwIfAborted();
      // A connection that closes cleanly in the middle looks like the end of the stream.
      if (!builder.done) throw new ModelError("connection", "the model's stream ended in the middle of its answer");
      note = null;
      return builder.reply();
    },
    async size(signal) {
      if (official) return { contextTokens: null, maxOutputTokens: null };
      return findWindow(model, askJson(server, signal));
    },
  };
}
