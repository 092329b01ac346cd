// Builds one reply from the events of Anthropic's stream; pure. Thinking, signatures and unknown blocks are passed
// through unread.
import type Anthropic from "@anthropic-ai/sdk";
import { noUsage, type Part, type Usage } from "@parley/contracts";
import type { ModelDelta, StopReason } from "../provider.ts";

export function stopReasonOf(raw: string | null): StopReason {
  switch (raw) {
    case "end_turn":
    case "tool_use":
    case "max_tokens":
    case "stop_sequence":
    case "pause_turn":
    case "refusal":
    case "model_context_window_exceeded":
      return raw;
    default:
      return "other";
  }
}

/** Collects one message from stream events. It is complete only after `message_stop`. */
export class MessageBuilder {
  stopped = false;
  rawStopReason: string | null = null;
  stopSequence: string | null = null;
  model = "";
  /** Null until the stream reports it. */
  usage: Usage | null = null;
  /** The requested model with its provider's prefix: only this model may receive its thinking again. */
  readonly #writtenBy: string;
  readonly #parts: Part[] = [];
  /** Indices of finished blocks: a tool call that is not among them was cut off. */
  readonly #closed = new Set<number>();

  constructor(writtenBy: string) {
    this.#writtenBy = writtenBy;
  }

  add(event: Anthropic.Beta.BetaRawMessageStreamEvent): ModelDelta | undefined {
    switch (event.type) {
      case "message_start":
        this.model = event.message.model;
        this.#count(event.message.usage);
        return undefined;
      case "content_block_start":
        this.#parts[event.index] = startPart(event.content_block, this.#writtenBy);
        return undefined;
      case "content_block_delta":
        return this.#grow(event.index, event.delta);
      case "content_block_stop":
        this.#closed.add(event.index);
        return undefined;
      case "message_delta":
        this.rawStopReason = event.delta.stop_reason;
        this.stopSequence = event.delta.stop_sequence;
        this.#count(event.usage);
        return undefined;
      case "message_stop":
        this.stopped = true;
        return undefined;
      default:
        return undefined;
    }
  }

  /** The parts, without a tool call that was cut off; calls without arguments get an empty object. */
  parts(): Part[] {
    return this.#parts.flatMap<Part>((part, index) => {
      if (part.type !== "tool_call") return [part];
      if (!this.#closed.has(index)) return [];
      return [{ ...part, input: part.input === "" ? "{}" : part.input }];
    });
  }

  #grow(index: number, delta: Anthropic.Beta.BetaRawContentBlockDelta): ModelDelta | undefined {
    const part = this.#parts[index];
    if (delta.type === "text_delta" && part?.type === "text") {
      part.text += delta.text;
      return { type: "text", text: delta.text };
    }
    if (delta.type === "thinking_delta" && part?.type === "reasoning") {
      part.text += delta.thinking;
      return { type: "reasoning", text: delta.thinking };
    }
    if (delta.type === "signature_delta" && part?.type === "reasoning")
      part.signature = (part.signature ?? "") + delta.signature;
    if (delta.type === "input_json_delta" && part?.type === "tool_call") {
      part.input += delta.partial_json;
      return { type: "tool_input", id: part.id, name: part.name, text: delta.partial_json };
    }
    return undefined;
  }

  /** The end of the stream repeats only values that changed since its start. */
  #count(usage: Anthropic.Beta.BetaUsage | Anthropic.Beta.BetaMessageDeltaUsage): void {
    const before = this.usage ?? noUsage;
    const written1h = "cache_creation" in usage ? usage.cache_creation?.ephemeral_1h_input_tokens : undefined;
    const cacheWrite1hTokens = written1h ?? before.cacheWrite1hTokens;
    const reasoningTokens = usage.output_tokens_details?.thinking_tokens ?? before.reasoningTokens;
    this.usage = {
      inputTokens: usage.input_tokens ?? before.inputTokens,
      outputTokens: usage.output_tokens ?? before.outputTokens,
      cacheReadTokens: usage.cache_read_input_tokens ?? before.cacheReadTokens,
      cacheWriteTokens: usage.cache_creation_input_tokens ?? before.cacheWriteTokens,
      ...(cacheWrite1hTokens === undefined ? {} : { cacheWrite1hTokens }),
      ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    };
  }
}

function startPart(block: Anthropic.Beta.BetaContentBlock, writtenBy: string): Part {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "thinking":
      return {
        type: "reasoning",
        text: block.thinking,
        ...(block.signature === "" ? {} : { signature: block.signature }),
        model: writtenBy,
      };
    case "redacted_thinking":
      return { type: "reasoning", text: "", redacted: block.data, model: writtenBy };
    case "tool_use":
      return { type: "tool_call", id: block.id, name: block.name, input: "" };
    default:
      return { type: "provider", provider: "anthropic", raw: JSON.stringify(block) };
  }
}
