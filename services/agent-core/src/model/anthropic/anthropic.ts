// Claude over Anthropic's API. The SDK provides the client; retries, watchdogs and the loop are Parley's.
import Anthropic from "@anthropic-ai/sdk";
import { currentValue, type Secret } from "@parley/chassis";
import type { ModelsSettings } from "@parley/contracts";
import { fetchCapabilities, unknownCapabilities, type Capabilities } from "./capabilities.ts";
import { toModelError } from "./errors.ts";
import { MessagesEndpoint } from "./messages.ts";
import { MessageBuilder, stopReasonOf } from "./reply.ts";
import { textOfBody, toPrompt, toRequest, type WireOptions } from "./wire.ts";
import { ModelError, type ModelProvider, type ModelRequest } from "../provider.ts";
import { CachedValue } from "../cached-value.ts";
import { httpFetch } from "../http-fetch.ts";

export interface AnthropicOptions {
  apiKey: Secret;
  model: string;
  baseUrl: string | undefined;
  /** The provider's name. Default: `anthropic`. */
  name?: string;
  /** The environment variable with the key. Default: ANTHROPIC_API_KEY. */
  keyVariable?: string | undefined;
  /** Used when a request does not specify it. */
  thinking: "off" | "adaptive";
  /** How much of the thinking is displayed. */
  display: ModelsSettings["thinking_display"];
  /** The endpoint supports examples of a tool's arguments; omitted: it does not. */
  examples?: boolean;
}

export type CountingProvider = ModelProvider & Required<Pick<ModelProvider, "countTokens">>;

export function createAnthropic(options: AnthropicOptions): CountingProvider {
  const client = new Anthropic({
    apiKey: () => Promise.resolve(currentValue(options.apiKey)),
    ...(options.baseUrl === undefined ? {} : { baseURL: options.baseUrl }),
    maxRetries: 0,
    fetch: httpFetch,
    // turn/tracing.ts creates the span of a call, and the provider needs no trace context.
    openTelemetry: false,
  });
  const { name = "anthropic", keyVariable, model, thinking, display, examples = false } = options;
  const messages = new MessagesEndpoint(client, options.apiKey);
  const origin = `${name}:${model}`;
  const wire: WireOptions = { model, origin, thinking, display, examples };
  let known: Capabilities = unknownCapabilities;
  const asking = new CachedValue((signal) => fetchCapabilities(client, options.model, signal));
  const learnCapabilities = async (): Promise<Capabilities> => (known = (await asking.get()) ?? known);

  /** An open stream. A field that the endpoint refuses as unknown is not sent again. */
  const open = async (request: ModelRequest, signal: AbortSignal) => {
    const capabilities = await learnCapabilities();
    for (;;) {
      const body = toRequest(request, wire, capabilities);
      try {
        return await messages.open(textOfBody(body), body.betas ?? [], signal);
      } catch (error) {
        const modelError = toModelError(error);
        if (modelError.failure !== "invalid" || !withdraw(wire, body, modelError.message)) throw error;
      }
    }
  };

  return {
    name,
    model: options.model,
    priceList: options.name === undefined ? "official" : "unknown",
    note: () => known.note,
    async prepare() {
      await learnCapabilities();
    },
    async stream(request, on, signal) {
      const builder = new MessageBuilder(origin);
      try {
        for await (const events of await open(request, signal)) {
          // Also for pings, the only events while a model thinks without showing it.
          on.alive();
          for (const event of events) {
            const delta = builder.add(event);
            if (delta !== undefined) on.delta(delta);
          }
        }
      } catch (error) {
        signal.throwIfAborted();
        const failure = toModelError(error);
        throw keyVariable === undefined ? failure : failure.withKeyVariable(keyVariable);
      }
      signal.throwIfAborted();
      // A connection that closes cleanly in the middle ends the iteration without an error.
      if (!builder.stopped) throw new ModelError("connection", "the model's stream ended in the middle of its answer");
      return {
        parts: builder.parts(),
        stopReason: stopReasonOf(builder.rawStopReason),
        rawStopReason: builder.rawStopReason ?? "none",
        stopSequence: builder.stopSequence ?? undefined,
        usage: builder.usage,
        model: builder.model,
      };
    },
    size: async (signal) => (await fetchCapabilities(client, options.model, signal)).size,
    async countTokens(request, signal) {
      try {
        const prompt = toPrompt(request, wire, await learnCapabilities());
        return (await client.beta.messages.countTokens({ model: options.model, ...prompt }, { signal })).input_tokens;
      } catch (error) {
        signal.throwIfAborted();
        throw toModelError(error);
      }
    },
  };
}

/** Removes a field that the endpoint reports as unknown; false: the error is about something else. */
function withdraw(
  wire: WireOptions,
  body: Pick<ReturnType<typeof toRequest>, "thinking" | "tools">,
  message: string,
): boolean {
  const { thinking, tools = [] } = body;
  if (thinking !== undefined && thinking !== null && "display" in thinking && /display|anthropic-beta/i.test(message)) {
    wire.display = null;
    return true;
  }
  if (tools.some((tool) => "input_examples" in tool) && /input_examples/.test(message)) {
    wire.examples = false;
    return true;
  }
  return false;
}
