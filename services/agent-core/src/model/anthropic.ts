// Claude over Anthropic's API. The SDK is client and stream parser; retries, watchdogs and the loop are ours.
import Anthropic from "@anthropic-ai/sdk";
import type { ModelsSettings } from "@parley/contracts";
import { askCapabilities, unknownCapabilities, type Capabilities } from "./anthropic-capabilities.ts";
import { toModelError } from "./anthropic-errors.ts";
import { MessageBuilder, stopReasonOf } from "./anthropic-reply.ts";
import { toPrompt, toRequest, type WireOptions } from "./anthropic-wire.ts";
import { ModelError, type ModelProvider, type ModelRequest } from "./provider.ts";
import { Refreshing } from "./refreshing.ts";

export interface AnthropicOptions {
  apiKey: string;
  model: string;
  baseUrl: string | undefined;
  /** Where a request does not say. */
  thinking: "off" | "adaptive";
  /** What is shown of the thinking. */
  display: ModelsSettings["thinking_display"];
}

export function createAnthropic(options: AnthropicOptions): ModelProvider {
  const client = new Anthropic({
    apiKey: options.apiKey,
    ...(options.baseUrl === undefined ? {} : { baseURL: options.baseUrl }),
    maxRetries: 0,
    // The call has its span already (turn/tracing.ts), and the provider needs no trace of ours.
    openTelemetry: false,
  });
  const wire: WireOptions = { model: options.model, thinking: options.thinking, display: options.display };
  let known: Capabilities = unknownCapabilities;
  const asking = new Refreshing((signal) => askCapabilities(client, options.model, signal));
  const capabilities = async (): Promise<Capabilities> => (known = (await asking.get()) ?? known);

  /** A stream that has begun. An endpoint that does not know the display of thinking is asked without it from then on. */
  const open = async (request: ModelRequest, signal: AbortSignal) => {
    const can = await capabilities();
    const body = toRequest(request, wire, can);
    try {
      return await client.beta.messages.create(body, { signal });
    } catch (error) {
      const said = toModelError(error);
      const display = body.thinking !== undefined && body.thinking !== null && "display" in body.thinking;
      if (!display || said.failure !== "invalid" || !/display|anthropic-beta/i.test(said.message)) throw error;
      wire.display = null;
      return client.beta.messages.create(toRequest(request, wire, can), { signal });
    }
  };

  return {
    name: "anthropic",
    model: options.model,
    priceList: "official",
    note: () => known.note,
    async prepare() {
      await capabilities();
    },
    async stream(request, on, signal) {
      const builder = new MessageBuilder(`anthropic:${options.model}`);
      try {
        for await (const event of await open(request, signal)) {
          on.alive();
          const delta = builder.add(event);
          if (delta !== undefined) on.delta(delta);
        }
      } catch (error) {
        signal.throwIfAborted();
        throw toModelError(error);
      }
      signal.throwIfAborted();
      // A connection that closes cleanly in the middle ends the iteration without an error.
      if (!builder.stopped) throw new ModelError("connection", "the model's stream ended in the middle of its answer");
      return {
        parts: builder.parts(),
        stopReason: stopReasonOf(builder.rawStopReason),
        rawStopReason: builder.rawStopReason ?? "none",
        usage: builder.usage,
        model: builder.model,
      };
    },
    size: async (signal) => (await askCapabilities(client, options.model, signal)).size,
    async countTokens(request, signal) {
      try {
        const prompt = toPrompt(request, options.model, await capabilities());
        return (await client.beta.messages.countTokens({ model: options.model, ...prompt }, { signal })).input_tokens;
      } catch (error) {
        signal.throwIfAborted();
        throw toModelError(error);
      }
    },
  };
}
