// The port to a model. An adapter turns a prompt into one provider's call and its stream into parts; it neither retries nor
// knows turns.
import type { Part, ToolDescriptor, Usage } from "@parley/contracts";

export interface PromptMessage {
  role: "user" | "assistant";
  /** User: tool results first, then text. Assistant: as the model wrote it. */
  parts: Part[];
}

export interface ModelRequest {
  system: string;
  /** Sorted by name; the same for the whole session, so that the provider's cache holds. */
  tools: ToolDescriptor[];
  messages: PromptMessage[];
  maxOutputTokens: number;
}

/** `other`: a reason this build does not know; treated as the end. */
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
  /** As the provider spelt it. */
  rawStopReason: string;
  usage: Usage;
  /** The model that answered. */
  model: string;
}

export interface ModelDelta {
  type: "text" | "reasoning";
  text: string;
}

export interface ModelProvider {
  readonly name: string;
  readonly model: string;
  /** Said to whoever asks which model answers; null when there is nothing to say. */
  note(): string | null;
  /** Asks ahead what the first call would have to ask, e.g. whether the key is good. Never throws. */
  prepare(): Promise<void>;
  /** Streams one reply. `alive` is called for every sign of life on the wire. Throws ModelError, or the signal's reason. */
  stream(
    request: ModelRequest,
    on: { delta(delta: ModelDelta): void; alive(): void },
    signal: AbortSignal,
  ): Promise<ModelReply>;
}

export type ModelFailure =
  /** 429, 529, 5xx, a lost or silent connection: try again. */
  | "rate_limit"
  | "overloaded"
  | "server"
  | "connection"
  | "stalled"
  /** Trying again changes nothing. */
  | "auth"
  | "spend_limit"
  | "context_overflow"
  | "invalid";

const retryable: ReadonlySet<ModelFailure> = new Set(["rate_limit", "overloaded", "server", "connection", "stalled"]);

/** Why a model call failed. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly failure: ModelFailure;
  /** What the provider asks to wait at least. */
  readonly retryAfterMs: number | undefined;

  constructor(failure: ModelFailure, message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(message, { cause: options.cause });
    this.failure = failure;
    this.retryAfterMs = options.retryAfterMs;
  }

  get retryable(): boolean {
    return retryable.has(this.failure);
  }
}
