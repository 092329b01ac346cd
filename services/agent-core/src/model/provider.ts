// The port to a model. An adapter turns a prompt into one provider's call and its stream into parts; it neither retries nor
// knows turns.
import type { Effort, Part, ToolDescriptor, Usage } from "@parley/contracts";

export interface PromptMessage {
  role: "user" | "assistant";
  /** User: tool results first, then text. Assistant: as the model wrote it. */
  parts: Part[];
}

/** What a model is told of a tool; examples only where its arguments are easily got wrong. */
export type PromptTool = Pick<ToolDescriptor, "name" | "description" | "inputSchema" | "examples">;

export interface ModelRequest {
  system: string;
  /** Sorted by name; the same for the whole session, so that the provider's cache holds. */
  tools: PromptTool[];
  messages: PromptMessage[];
  maxOutputTokens: number;
  /** How hard the model works. Left out: the model's own default. A model that does not know the level gets its nearest lower one. */
  effort?: Effort | undefined;
  /** Left out: as the provider is set up. */
  thinking?: "off" | "adaptive" | undefined;
  /** How long the provider keeps the prompt. Default `5m`; `1h` costs more to write and pays where people pause. */
  cacheTtl?: "5m" | "1h" | undefined;
  /** The answer ends before one of these texts. */
  stopSequences?: readonly string[] | undefined;
  /**
   * The answer is text. The tools stay in the request, since leaving them out would change the prefix and lose the cache:
   * the model is told instead, and a call it makes all the same is dropped.
   */
  toolChoice?: "none" | undefined;
  /** What the attachments of the messages hold: base64 by hash. What is missing is named, not shown. */
  contents?: ReadonlyMap<string, string> | undefined;
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
  /** Null: the provider did not say. */
  usage: Usage | null;
  /** The model that answered, as the provider spells it. */
  model: string;
}

export interface ModelDelta {
  type: "text" | "reasoning";
  text: string;
}

/** Whose prices hold: the provider's own, none since nothing is paid, or only what the settings say. */
export type PriceList = "official" | "free" | "unknown";

/** What is known of a model's size; null: the provider does not say. */
export interface ModelSize {
  /** Tokens of prompt and answer together. */
  contextTokens: number | null;
  maxOutputTokens: number | null;
}

/** The model that goes on in place of another. */
export interface Failover {
  from: string;
  to: string;
  reason: string;
}

export interface ModelProvider {
  /** `anthropic`, `openai` or `rehearsal`. */
  readonly name: string;
  /** As it is asked for, without the provider's prefix. */
  readonly model: string;
  readonly priceList: PriceList;
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
  /** Asks how much the model holds. Throws when the provider cannot be asked. */
  size(signal: AbortSignal): Promise<ModelSize>;
  /** Counts a prompt exactly; only where the provider has such a call. Throws ModelError, or the signal's reason. */
  countTokens?(request: ModelRequest, signal: AbortSignal): Promise<number>;
  /**
   * Whether another model goes on at once after this failure, the `failures`th in a row of the model that was asked. Only a
   * chain of models has it.
   */
  moveOn?(error: ModelError, failures: number, times: { tries: number; capMs: number }): Failover | undefined;
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

interface ModelErrorOptions {
  cause?: unknown;
  retryAfterMs?: number | undefined;
  keyVariable?: "ANTHROPIC_API_KEY" | "OPENAI_API_KEY";
}

/** Why a model call failed. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly failure: ModelFailure;
  /** What the provider asks to wait at least. */
  readonly retryAfterMs: number | undefined;
  /** The environment variable with the key of the provider that failed. */
  readonly keyVariable: "ANTHROPIC_API_KEY" | "OPENAI_API_KEY" | undefined;

  constructor(failure: ModelFailure, message: string, options: ModelErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.failure = failure;
    this.retryAfterMs = options.retryAfterMs;
    this.keyVariable = options.keyVariable;
  }

  get retryable(): boolean {
    return retryable.has(this.failure);
  }
}
