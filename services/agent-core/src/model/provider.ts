// The interface to a model. An adapter converts a prompt to one provider's request and its stream to parts; it does not
// retry and knows nothing about turns.
import { omitUndefined } from "@parley/kit";
import type { Effort, Part, ToolDescriptor, Usage } from "@parley/contracts";

export interface PromptMessage {
  role: "user" | "assistant";
  /** User: tool results first, then text. Assistant: as the model wrote it. */
  parts: Part[];
}

/** The fields of a tool that a model receives; examples only for arguments that models often get wrong. */
export type PromptTool = Pick<ToolDescriptor, "name" | "description" | "inputSchema" | "examples">;

export interface ModelRequest {
  system: string;
  /** Sorted by name; constant within a session, so that the provider's cache stays valid. */
  tools: PromptTool[];
  messages: PromptMessage[];
  maxOutputTokens: number;
  /** Effort level. Omitted: the model's default. A model without this level gets the next lower one. */
  effort?: Effort | undefined;
  /** Omitted: the provider's configuration. */
  thinking?: "off" | "adaptive" | undefined;
  /** How long the provider caches the prompt. Default `5m`; `1h` costs more to write and pays off when people pause. */
  cacheTtl?: "5m" | "1h" | undefined;
  /** The answer ends before any of these texts. */
  stopSequences?: readonly string[] | undefined;
  /**
   * Requires a text answer. The tools stay in the request, because removing them would change the prefix and lose the
   * cache. The prompt contains an instruction instead, and calls in the reply are dropped.
   */
  toolChoice?: "none" | undefined;
  /** Contents of the messages' attachments: base64 by hash. Attachments without content are named only. */
  contents?: ReadonlyMap<string, string> | undefined;
}

/** `other`: an unknown reason; treated as the end. */
export type StopReason =
  | "end_turn"
  | "tool_use"
  | "max_tokens"
  | "stop_sequence"
  | "pause_turn"
  | "refusal"
  | "model_context_window_exceeded"
  | "other";

export interface ModelReply {
  parts: Part[];
  stopReason: StopReason;
  /** The provider's own value. */
  rawStopReason: string;
  /** The stop sequence that was reached. Omitted: none, or the provider did not report which. */
  stopSequence?: string | undefined;
  /** Null: the provider did not report it. */
  usage: Usage | null;
  /** The model that answered, as the provider names it. */
  model: string;
}

export interface TextDelta {
  type: "text" | "reasoning";
  text: string;
}

/** A part of the arguments of a tool call. `id` and `name` are those of the call in the reply. */
export interface ToolInputDelta {
  type: "tool_input";
  id: string;
  name: string;
  text: string;
}

export type ModelDelta = TextDelta | ToolInputDelta;

/** Which prices apply: the provider's list, none because the model is free, or only those in the settings. */
export type PriceList = "official" | "free" | "unknown";

/** A model's size; null: the provider does not report it. */
export interface ModelSize {
  /** Tokens of prompt and answer together. */
  contextTokens: number | null;
  maxOutputTokens: number | null;
}

/** A switch from one model to another. */
export interface Failover {
  from: string;
  to: string;
  reason: string;
}

export interface ModelProvider {
  /** `anthropic`, `openai` or `rehearsal`. */
  readonly name: string;
  /** The requested name, without the provider's prefix. */
  readonly model: string;
  readonly priceList: PriceList;
  /** A remark for people who look up which model answers; null when there is none. */
  note(): string | null;
  /** Prepares the first call, for example by checking the key. Never throws. */
  prepare(): Promise<void>;
  /** Streams one reply. `alive` is called for all data received. Throws ModelError, or the signal's reason. */
  stream(
    request: ModelRequest,
    on: { delta(delta: ModelDelta): void; alive(): void },
    signal: AbortSignal,
  ): Promise<ModelReply>;
  /** Requests the model's size. Throws when the provider does not respond. */
  size(signal: AbortSignal): Promise<ModelSize>;
  /** Counts a prompt's tokens exactly, if the provider supports it. Throws ModelError, or the signal's reason. */
  countTokens?(request: ModelRequest, signal: AbortSignal): Promise<number>;
  /**
   * Switches to another model if that should happen immediately after this failure. `failures`: consecutive failures of the
   * current model. Only a chain of models has it.
   */
  moveOn?(error: ModelError, failures: number, times: { tries: number; capMs: number }): Failover | undefined;
}

/** A provider that passes all calls on to `provider`, except those of `replaced`. */
export function wrapProvider(provider: ModelProvider, replaced: Partial<ModelProvider>): ModelProvider {
  const countTokens = provider.countTokens?.bind(provider);
  return {
    name: provider.name,
    model: provider.model,
    priceList: provider.priceList,
    note: () => provider.note(),
    prepare: () => provider.prepare(),
    size: (signal) => provider.size(signal),
    stream: (request, on, signal) => provider.stream(request, on, signal),
    ...omitUndefined({ countTokens }),
    ...replaced,
  };
}

export type ModelFailure =
  /** 429, 529, 5xx, a lost or silent connection: retryable. */
  | "rate_limit"
  | "overloaded"
  | "server"
  | "connection"
  | "stalled"
  /** Not retryable. */
  | "auth"
  | "spend_limit"
  | "context_overflow"
  /** The provider does not have the model. */
  | "unknown_model"
  | "invalid";

const retryable: ReadonlySet<ModelFailure> = new Set(["rate_limit", "overloaded", "server", "connection", "stalled"]);

interface ModelErrorOptions {
  cause?: unknown;
  retryAfterMs?: number | undefined;
  keyVariable?: string | undefined;
}

/** Why a model call failed. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly failure: ModelFailure;
  /** The minimum delay that the provider requires. */
  readonly retryAfterMs: number | undefined;
  /** The environment variable with the key of the provider that failed. */
  readonly keyVariable: string | undefined;

  constructor(failure: ModelFailure, message: string, options: ModelErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.failure = failure;
    this.retryAfterMs = options.retryAfterMs;
    this.keyVariable = options.keyVariable;
  }

  /** The same failure of a provider whose key is in this environment variable. */
  withKeyVariable(keyVariable: string | undefined): ModelError {
    return new ModelError(this.failure, this.message, {
      cause: this.cause,
      retryAfterMs: this.retryAfterMs,
      keyVariable,
    });
  }

  get retryable(): boolean {
    return retryable.has(this.failure);
  }
}
