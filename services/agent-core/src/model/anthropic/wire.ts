// Converts Parley's prompt to Anthropic's request; pure. Equal prompts produce equal bytes, and a longer prompt starts
// with the bytes of the shorter one: the provider's cache and the signatures of thinking depend on it.
import { parseJsonObject } from "@parley/kit";
import type Anthropic from "@anthropic-ai/sdk";
import type { ModelsSettings, Part, ToolResult } from "@parley/contracts";
import { cacheControl, markMessages, markTools } from "./cache.ts";
import { renderAttachment, type RenderedAttachment } from "../render-attachment.ts";
import type { Capabilities } from "./capabilities.ts";
import { nearestEffort } from "../effort.ts";
import type { ModelRequest, PromptMessage, PromptTool } from "../provider.ts";
import { withExamples } from "../tool-examples.ts";

type Block = Anthropic.Beta.BetaContentBlockParam;
type Body = Anthropic.Beta.Messages.MessageCreateParamsStreaming;

export interface WireOptions {
  model: string;
  /** The model with its provider's prefix, as messages name it. Default: `anthropic:<model>`. */
  origin?: string;
  /** Used when a request does not specify it. */
  thinking: "off" | "adaptive";
  /** Null: not sent, because the endpoint does not support it. */
  display: ModelsSettings["thinking_display"] | null;
  /** The endpoint supports examples as a field; otherwise they are appended to the description. */
  examples?: boolean;
}

/** The beta that makes a thinking model report its progress between tool calls. */
const updatesBeta = "thinking-display-updates-2026-08-18";

export function toRequest(request: ModelRequest, options: WireOptions, can: Capabilities): Body {
  const effort = nearestEffort(request.effort, can.efforts);
  const thinking = thinkingOf(request.thinking ?? options.thinking, options.display, can);
  const stops = request.stopSequences ?? [];
  return {
    model: options.model,
    max_tokens: Math.min(request.maxOutputTokens, can.size.maxOutputTokens ?? Number.POSITIVE_INFINITY),
    stream: true,
    ...toPrompt(request, options, can),
    ...(thinking === undefined ? {} : { thinking }),
    ...(effort === undefined ? {} : { output_config: { effort } }),
    ...(stops.length === 0 ? {} : { stop_sequences: [...stops] }),
    ...(thinking?.type === "adaptive" && thinking.display === "updates" ? { betas: [updatesBeta] } : {}),
  };
}

/** The part of a request that is counted and cached. */
export function toPrompt(
  request: ModelRequest,
  { model, origin = `anthropic:${model}`, examples = false }: Pick<WireOptions, "model" | "origin" | "examples">,
  can: Capabilities,
): Pick<Body, "messages"> & { system: Anthropic.Beta.BetaTextBlockParam[]; tools: Anthropic.Beta.BetaTool[] } {
  const cache = cacheControl(request.cacheTtl);
  return {
    system: [{ type: "text", text: request.system, cache_control: cache }],
    tools: markTools(
      request.tools.map((tool) => toTool(tool, examples)),
      cache,
    ),
    messages: markMessages(
      request.messages.map((message) => toMessage(message, origin, can, request.contents)),
      cache,
    ),
  };
}

function thinkingOf(
  wanted: "off" | "adaptive",
  display: WireOptions["display"],
  can: Capabilities,
):
  | Anthropic.Beta.BetaThinkingConfigAdaptive
  | Anthropic.Beta.BetaThinkingConfigDisabled
  | Anthropic.Beta.BetaThinkingConfigBetweenTools
  | undefined {
  if (wanted === "off") return can.thinkingOff === null ? undefined : { type: can.thinkingOff };
  if (!can.adaptiveThinking) return undefined;
  return { type: "adaptive", ...(display === null ? {} : { display }) };
}

function toTool(tool: PromptTool, takesExamples: boolean): Anthropic.Beta.BetaTool {
  const { name, examples } = tool;
  const schema = { ...tool.inputSchema, type: "object" as const };
  return takesExamples && examples !== undefined
    ? { name, description: tool.description, input_schema: schema, input_examples: examples }
    : { name, description: withExamples(tool), input_schema: schema };
}

function toMessage(
  message: PromptMessage,
  requestModel: string,
  can: Capabilities,
  contents: ModelRequest["contents"],
): Anthropic.Beta.BetaMessageParam {
  return { role: message.role, content: message.parts.flatMap((part) => toBlock(part, requestModel, can, contents)) };
}

function toBlock(part: Part, requestModel: string, can: Capabilities, contents: ModelRequest["contents"]): Block[] {
  switch (part.type) {
    case "text":
      // The API refuses whitespace-only text.
      return part.text.trim() === "" ? [] : [{ type: "text", text: part.text }];
    case "reasoning":
      // A signature is invalid for any other model.
      if (part.model !== undefined && part.model !== requestModel) return [];
      if (part.redacted !== undefined) return [{ type: "redacted_thinking", data: part.redacted }];
      return part.signature === undefined ? [] : [{ type: "thinking", thinking: part.text, signature: part.signature }];
    case "tool_call":
      return [{ type: "tool_use", id: part.id, name: part.name, input: parseJsonObject(part.input) ?? {} }];
    case "tool_result":
      return [
        {
          type: "tool_result",
          tool_use_id: part.id,
          content: resultContent(part, can, contents),
          ...(part.isError ? { is_error: true } : {}),
        },
      ];
    case "binary":
      return [binaryBlock(part, can)];
    case "blob":
      return renderAttachment(part, contents, can).flatMap(shownBlock);
    case "provider":
      return part.provider === "anthropic" ? [JSON.parse(part.raw) as Block] : [];
    // Prompts contain quotes as text.
    case "quote":
    case "finish":
      return [];
    default:
      return part satisfies never;
  }
}

/** A string for text-only results: they were always sent like this, so the cache contains them. */
function resultContent(
  { content, attachments = [] }: ToolResult,
  can: Capabilities,
  contents: ModelRequest["contents"],
): string | MediaBlock[] {
  if (attachments.length === 0) return content === "" ? "(no output)" : content;
  const shown = attachments.flatMap((each) => renderAttachment(each, contents, can)).flatMap(shownBlock);
  return [...(content.trim() === "" ? [] : [{ type: "text" as const, text: content }]), ...shown];
}

type MediaBlock =
  | Anthropic.Beta.BetaTextBlockParam
  | Anthropic.Beta.BetaImageBlockParam
  | Anthropic.Beta.BetaRequestDocumentBlock;

function shownBlock(shown: RenderedAttachment): MediaBlock[] {
  switch (shown.kind) {
    case "image":
      return [{ type: "image", source: { type: "base64", media_type: shown.mediaType, data: shown.data } }];
    case "pdf":
      return [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: shown.data } }];
    case "text":
      return shown.text.trim() === "" ? [] : [{ type: "text", text: shown.text }];
    default:
      return shown satisfies never;
  }
}

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"] as const;

function binaryBlock(part: Extract<Part, { type: "binary" }>, can: Capabilities): Block {
  const imageType = imageTypes.find((type) => type === part.mediaType);
  if (imageType !== undefined && can.images) {
    return { type: "image", source: { type: "base64", media_type: imageType, data: part.data } };
  }
  if (part.mediaType === "application/pdf" && can.pdfs) {
    return { type: "document", source: { type: "base64", media_type: "application/pdf", data: part.data } };
  }
  return {
    type: "text",
    text: `[attachment ${part.name ?? "without a name"}, ${part.mediaType}: this type cannot be shown to you]`,
  };
}
