// Between Parley's parts and Anthropic's content blocks, in both directions. Pure; thinking, signatures and unknown blocks go
// through unread.
import type Anthropic from "@anthropic-ai/sdk";
import type { Part, ToolDescriptor, Usage } from "@parley/contracts";
import type { ModelRequest, PromptMessage, StopReason } from "./provider.ts";

type Block = Anthropic.ContentBlockParam;

export function toRequest(
  request: ModelRequest,
  model: string,
  thinking: boolean,
): Anthropic.MessageCreateParamsStreaming {
  return {
    model,
    max_tokens: request.maxOutputTokens,
    stream: true,
    system: [{ type: "text", text: request.system, cache_control: { type: "ephemeral" } }],
    tools: request.tools.map(toTool),
    messages: withBreakpoints(request.messages.map(toMessage)),
    ...(thinking ? { thinking: { type: "adaptive" } } : {}),
  };
}

function toTool(tool: ToolDescriptor): Anthropic.Tool {
  return {
    name: tool.name,
    description: tool.description,
    input_schema: { ...tool.inputSchema, type: "object" },
  };
}

function toMessage(message: PromptMessage): Anthropic.MessageParam {
  return { role: message.role, content: message.parts.flatMap(toBlock) };
}

function toBlock(part: Part): Block[] {
  switch (part.type) {
    case "text":
      // The API refuses text of white space only.
      return part.text.trim() === "" ? [] : [{ type: "text", text: part.text }];
    case "reasoning":
      if (part.redacted !== undefined) return [{ type: "redacted_thinking", data: part.redacted }];
      return part.signature === undefined ? [] : [{ type: "thinking", thinking: part.text, signature: part.signature }];
    case "tool_call":
      return [{ type: "tool_use", id: part.id, name: part.name, input: parseObject(part.input) }];
    case "tool_result":
      return [
        {
          type: "tool_result",
          tool_use_id: part.id,
          content: part.content === "" ? "(no output)" : part.content,
          ...(part.isError ? { is_error: true } : {}),
        },
      ];
    case "binary":
      return [binaryBlock(part)];
    case "provider":
      return part.provider === "anthropic" ? [JSON.parse(part.raw) as Block] : [];
    case "finish":
      return [];
    default:
      return part satisfies never;
  }
}

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"] as const;

function binaryBlock(part: Extract<Part, { type: "binary" }>): Block {
  const imageType = imageTypes.find((type) => type === part.mediaType);
  if (imageType !== undefined) {
    return { type: "image", source: { type: "base64", media_type: imageType, data: part.data } };
  }
  if (part.mediaType === "application/pdf") {
    return { type: "document", source: { type: "base64", media_type: "application/pdf", data: part.data } };
  }
  return {
    type: "text",
    text: `[attachment ${part.name ?? "without a name"}, ${part.mediaType}: this kind cannot be shown to you]`,
  };
}

/** The arguments as the API wants them. What the model wrote was checked to be an object before it was stored. */
function parseObject(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : {};
  } catch {
    return {};
  }
}

/** Marks the last two user messages for the cache: the second keeps the earlier entry warm while the first is written. */
function withBreakpoints(messages: Anthropic.MessageParam[]): Anthropic.MessageParam[] {
  let left = 2;
  for (const message of messages.toReversed()) {
    if (left === 0) break;
    const last = Array.isArray(message.content) ? message.content.at(-1) : undefined;
    if (message.role !== "user" || last === undefined) continue;
    if (last.type === "text" || last.type === "tool_result" || last.type === "image" || last.type === "document") {
      last.cache_control = { type: "ephemeral" };
      left -= 1;
    }
  }
  return messages;
}

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

/** Collects one message from the stream's events. It is complete only when `message_stop` was seen. */
export class MessageBuilder {
  stopped = false;
  rawStopReason: string | null = null;
  model = "";
  usage: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
  readonly #parts: Part[] = [];
  /** Indices of blocks whose end was seen: a tool call without it was cut off. */
  readonly #closed = new Set<number>();

  add(event: Anthropic.RawMessageStreamEvent): { type: "text" | "reasoning"; text: string } | undefined {
    switch (event.type) {
      case "message_start":
        this.model = event.message.model;
        this.#count(event.message.usage);
        return undefined;
      case "content_block_start":
        this.#parts[event.index] = startPart(event.content_block);
        return undefined;
      case "content_block_delta":
        return this.#grow(event.index, event.delta);
      case "content_block_stop":
        this.#closed.add(event.index);
        return undefined;
      case "message_delta":
        this.rawStopReason = event.delta.stop_reason;
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

  #grow(
    index: number,
    delta: Anthropic.RawContentBlockDelta,
  ): { type: "text" | "reasoning"; text: string } | undefined {
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
    if (delta.type === "input_json_delta" && part?.type === "tool_call") part.input += delta.partial_json;
    return undefined;
  }

  #count(usage: Anthropic.Usage | Anthropic.MessageDeltaUsage): void {
    this.usage = {
      inputTokens: usage.input_tokens ?? this.usage.inputTokens,
      outputTokens: usage.output_tokens ?? this.usage.outputTokens,
      cacheReadTokens: usage.cache_read_input_tokens ?? this.usage.cacheReadTokens,
      cacheWriteTokens: usage.cache_creation_input_tokens ?? this.usage.cacheWriteTokens,
    };
  }
}

function startPart(block: Anthropic.ContentBlock): Part {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text };
    case "thinking":
      return {
        type: "reasoning",
        text: block.thinking,
        ...(block.signature === "" ? {} : { signature: block.signature }),
      };
    case "redacted_thinking":
      return { type: "reasoning", text: "", redacted: block.data };
    case "tool_use":
      return { type: "tool_call", id: block.id, name: block.name, input: "" };
    default:
      return { type: "provider", provider: "anthropic", raw: JSON.stringify(block) };
  }
}
