// Converts Parley's prompt to Anthropic's request; pure. Equal prompts produce equal bytes, and a longer prompt starts
// with the bytes of the shorter one: the provider's cache and the signatures of thinking depend on it.
import { createHash } from "node:crypto";
import { parseJsonObject } from "@parley/kit";
import type Anthropic from "@anthropic-ai/sdk";
import type { ModelsSettings, Part, ToolResult } from "@parley/contracts";
import { cacheControl, markMessages, markTools } from "./cache.ts";
import { renderAttachment, type RenderedAttachment } from "../render-attachment.ts";
import type { Capabilities } from "./capabilities.ts";
import { highestSupportedEffort } from "../effort.ts";
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

export function toRequest(request: ModelRequest, options: WireOptions, capabilities: Capabilities): Body {
  const effort = highestSupportedEffort(request.effort, capabilities.efforts);
  const thinking = thinkingOf(request.thinking ?? options.thinking, options.display, capabilities);
  const stops = request.stopSequences ?? [];
  return {
    model: options.model,
    max_tokens: Math.min(request.maxOutputTokens, capabilities.size.maxOutputTokens ?? Number.POSITIVE_INFINITY),
    stream: true,
    ...toPrompt(request, options, capabilities),
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
  capabilities: Capabilities,
): Pick<Body, "messages"> & Prefix {
  return {
    ...prefixOf(request, examples),
    messages: markMessages(
      request.messages.map((message) => toMessage(message, origin, capabilities, request.contents)),
      cacheControl(request.cacheTtl),
    ),
  };
}

interface Prefix {
  system: Anthropic.Beta.BetaTextBlockParam[];
  tools: Anthropic.Beta.BetaTool[];
}

/** The last prefix with each list of tools: most requests of an agent have the same one, and it is the largest part of them. */
const prefixes = new WeakMap<ModelRequest["tools"], { of: string; prefix: Prefix }>();
const texts = new WeakMap<object, string>();

function prefixOf(request: ModelRequest, examples: boolean): Prefix {
  const { tools, system, cacheTtl = "" } = request;
  const of = `${cacheTtl} ${examples} ${system}`;
  const known = prefixes.get(tools);
  if (known?.of === of) return known.prefix;
  const cache = cacheControl(request.cacheTtl);
  const prefix: Prefix = {
    system: [{ type: "text", text: system, cache_control: cache }],
    tools: markTools(
      tools.map((tool) => toTool(tool, examples)),
      cache,
    ),
  };
  prefixes.set(tools, { of, prefix });
  return prefix;
}

/** The JSON text of a request; that of its prefix is written once. */
export function textOfBody(body: Body): string {
  const { betas: _, system = [], tools = [], messages, ...others } = body;
  const fields = JSON.stringify(others).slice(0, -1);
  return `${fields},"system":${knownText(system)},"tools":${knownText(tools)},"messages":${JSON.stringify(messages)}}`;
}

function knownText(value: string | object): string {
  if (typeof value === "string") return JSON.stringify(value);
  let known = texts.get(value);
  if (known === undefined) texts.set(value, (known = JSON.stringify(value)));
  return known;
}

function thinkingOf(
  wanted: "off" | "adaptive",
  display: WireOptions["display"],
  capabilities: Capabilities,
):
  | Anthropic.Beta.BetaThinkingConfigAdaptive
  | Anthropic.Beta.BetaThinkingConfigDisabled
  | Anthropic.Beta.BetaThinkingConfigBetweenTools
  | undefined {
  if (wanted === "off") return capabilities.thinkingOff === null ? undefined : { type: capabilities.thinkingOff };
  if (!capabilities.adaptiveThinking) return undefined;
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
  capabilities: Capabilities,
  contents: ModelRequest["contents"],
): Anthropic.Beta.BetaMessageParam {
  return {
    role: message.role,
    content: message.parts.flatMap((part) => toBlock(part, requestModel, capabilities, contents)),
  };
}

function toBlock(
  part: Part,
  requestModel: string,
  capabilities: Capabilities,
  contents: ModelRequest["contents"],
): Block[] {
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
      return [{ type: "tool_use", id: wireId(part.id), name: part.name, input: parseJsonObject(part.input) ?? {} }];
    case "tool_result":
      return [
        {
          type: "tool_result",
          tool_use_id: wireId(part.id),
          content: resultContent(part, capabilities, contents),
          ...(part.isError ? { is_error: true } : {}),
        },
      ];
    case "binary":
      return [binaryBlock(part, capabilities)];
    case "blob":
      return renderAttachment(part, contents, capabilities).flatMap(shownBlock);
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

/** The API refuses ids with other characters, which other servers generate (`functions.read:0`). */
function wireId(id: string): string {
  return /^[A-Za-z0-9_-]+$/.test(id) ? id : `call_${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;
}

/** A string for text-only results: they were always sent like this, so the cache contains them. */
function resultContent(
  { content, attachments = [] }: ToolResult,
  capabilities: Capabilities,
  contents: ModelRequest["contents"],
): string | MediaBlock[] {
  if (attachments.length === 0) return content === "" ? "(no output)" : content;
  const shown = attachments.flatMap((each) => renderAttachment(each, contents, capabilities)).flatMap(shownBlock);
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

function binaryBlock(part: Extract<Part, { type: "binary" }>, capabilities: Capabilities): Block {
  const imageType = imageTypes.find((type) => type === part.mediaType);
  if (imageType !== undefined && capabilities.images) {
    return { type: "image", source: { type: "base64", media_type: imageType, data: part.data } };
  }
  if (part.mediaType === "application/pdf" && capabilities.pdfs) {
    return { type: "document", source: { type: "base64", media_type: "application/pdf", data: part.data } };
  }
  return {
    type: "text",
    text: `[attachment ${part.name ?? "without a name"}, ${part.mediaType}: this type cannot be shown to you]`,
  };
}
