// Claude over Anthropic's API. The SDK is client and stream parser; retries, watchdogs and the loop are ours.
import Anthropic, { APIConnectionError, APIError, AnthropicError } from "@anthropic-ai/sdk";
import { MessageBuilder, stopReasonOf, toRequest } from "./anthropic-wire.ts";
import { ModelError, type ModelProvider } from "./provider.ts";

export interface AnthropicOptions {
  apiKey: string;
  model: string;
  baseUrl: string | undefined;
  /** Ask for adaptive thinking where the model can. */
  thinking: boolean;
}

interface Capabilities {
  thinking: boolean;
  maxOutputTokens: number;
  note: string | null;
}

export function createAnthropic(options: AnthropicOptions): ModelProvider {
  const client = new Anthropic({
    apiKey: options.apiKey,
    ...(options.baseUrl === undefined ? {} : { baseURL: options.baseUrl }),
    maxRetries: 0,
  });
  let known: Capabilities | undefined;
  let asked: Promise<Capabilities> | undefined;
  const capabilities = async (): Promise<Capabilities> => {
    asked ??= askCapabilities(client, options);
    known = await asked;
    return known;
  };

  return {
    name: "anthropic",
    model: options.model,
    note: () => known?.note ?? null,
    async prepare() {
      await capabilities();
    },
    async stream(request, on, signal) {
      const { thinking, maxOutputTokens } = await capabilities();
      const body = toRequest(
        { ...request, maxOutputTokens: Math.min(request.maxOutputTokens, maxOutputTokens) },
        options.model,
        thinking,
      );
      const builder = new MessageBuilder();
      try {
        for await (const event of await client.messages.create(body, { signal })) {
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
  };
}

/** What the models API says; cautious defaults where it does not answer (a proxy, a mock). */
async function askCapabilities(client: Anthropic, options: AnthropicOptions): Promise<Capabilities> {
  try {
    const info = await client.models.retrieve(options.model, undefined, { timeout: 5_000 });
    return {
      thinking: options.thinking && info.capabilities?.thinking.types.adaptive.supported === true,
      maxOutputTokens: info.max_tokens ?? Number.POSITIVE_INFINITY,
      note: info.lifecycle === "deprecated" ? `${options.model} is deprecated and will be retired` : null,
    };
  } catch (error) {
    const note =
      error instanceof APIError && (error.status === 401 || error.status === 403)
        ? "ANTHROPIC_API_KEY is refused by the API; check the key"
        : null;
    return { thinking: false, maxOutputTokens: Number.POSITIVE_INFINITY, note };
  }
}

/** 429s that no waiting mends: the account's own limit is used up. */
const spendLimits = new Set(["enforced_spend_limit_reached", "contract_spend_limit_reached"]);

function toModelError(error: unknown): ModelError {
  if (error instanceof ModelError) return error;
  if (error instanceof APIConnectionError) return new ModelError("connection", error.message, { cause: error });
  if (error instanceof APIError) {
    const message = error.apiMessage ?? error.message;
    const options = { cause: error, ...retryAfter(error.headers as Headers | undefined) };
    const status = (error.status as number | undefined) ?? 0;
    // An error event inside a stream has no status, only its type.
    if (error.type === "overloaded_error" || status === 529) return new ModelError("overloaded", message, options);
    if (error.type === "rate_limit_error" || status === 429) {
      return new ModelError(spendLimits.has(error.errorCode ?? "") ? "spend_limit" : "rate_limit", message, options);
    }
    if (error.type === "api_error" || status >= 500 || status === 408 || status === 409) {
      return new ModelError("server", message, options);
    }
    if (status === 401 || status === 403) return new ModelError("auth", message, options);
    if (status === 402) return new ModelError("spend_limit", message, options);
    if (status === 413 || /prompt is too long|context window/i.test(message)) {
      return new ModelError("context_overflow", message, options);
    }
    return new ModelError("invalid", message, options);
  }
  // A dropped socket or an early end arrives as the SDK's base error, or as the runtime's own.
  if (error instanceof AnthropicError || error instanceof TypeError || isSystemError(error)) {
    return new ModelError("connection", error instanceof Error ? error.message : "connection lost", { cause: error });
  }
  return new ModelError("invalid", error instanceof Error ? error.message : String(error), { cause: error });
}

function isSystemError(error: unknown): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

function retryAfter(headers: Headers | undefined): { retryAfterMs?: number } {
  const exact = Number(headers?.get("retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(exact)) return { retryAfterMs: exact };
  const seconds = Number(headers?.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? { retryAfterMs: seconds * 1_000 } : {};
}
