// Converts Parley's prompt to a chat completion request for OpenAI and compatible servers; pure. Reasoning is never
// sent back, because most servers refuse it or read it as text.
import { createHash } from "node:crypto";
import { parseJsonObject } from "@parley/kit";
import { textOf, type Effort, type Part, type ToolCall, type ToolResult } from "@parley/contracts";
import { renderAttachment, type RenderedAttachment } from "../render-attachment.ts";
import { highestSupportedEffort } from "../effort.ts";
import type { Dialect, OutputLimit } from "./dialect.ts";
import type { ModelRequest, PromptMessage, PromptTool } from "../provider.ts";
import { withExamples } from "../tool-examples.ts";

export type ContentPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string } }
  | { type: "file"; file: { filename: string; file_data: string } };

interface WireCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

type WireMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: string | ContentPart[] }
  | { role: "assistant"; content: string | null; tool_calls?: WireCall[] }
  | { role: "tool"; tool_call_id: string; content: string };

interface WireTool {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

export interface WireRequest {
  model: string;
  messages: WireMessage[];
  /** Omitted when empty: servers refuse an empty list. */
  tools?: WireTool[];
  stream: boolean;
  /** Only with a stream. */
  stream_options?: { include_usage: true };
  reasoning_effort?: Effort;
  stop?: string[];
  max_tokens?: number;
  max_completion_tokens?: number;
}

export function toRequest(request: ModelRequest, model: string, limit: OutputLimit, dialect: Dialect): WireRequest {
  const system: WireMessage[] = request.system === "" ? [] : [{ role: "system", content: request.system }];
  const effort = highestSupportedEffort(request.effort, dialect.efforts);
  const stops = dialect.stops ? (request.stopSequences ?? []).slice(0, maxStops) : [];
  return {
    model,
    messages: [...system, ...request.messages.flatMap((message) => toMessages(message, dialect, request.contents))],
    ...(request.tools.length === 0 ? {} : { tools: request.tools.map(toTool) }),
    stream: dialect.stream,
    ...(dialect.stream && dialect.streamUsage ? { stream_options: { include_usage: true } } : {}),
    ...(effort === undefined ? {} : { reasoning_effort: effort }),
    ...(stops.length === 0 ? {} : { stop: stops }),
    [limit.field]: Math.min(request.maxOutputTokens, limit.atMostTokens),
  };
}

/** The most that OpenAI accepts. */
const maxStops = 4;

function toTool(tool: PromptTool): WireTool {
  // `properties` is required even when it is empty.
  const parameters = { properties: {}, ...tool.inputSchema, type: "object" };
  return { type: "function", function: { name: tool.name, description: withExamples(tool), parameters } };
}

function toMessages(
  { role, parts }: PromptMessage,
  dialect: Dialect,
  contents: ModelRequest["contents"],
): WireMessage[] {
  if (role === "assistant") return toAssistant(parts);
  const results = parts.flatMap((part) => (part.type === "tool_result" ? [toResult(part)] : []));
  const content = toContent(parts, dialect, contents);
  return content.length === 0 ? results : [...results, { role: "user", content: plain(content) }];
}

/** Empty for a message that contains only reasoning. */
function toAssistant(parts: readonly Part[]): WireMessage[] {
  const text = textOf(parts);
  const calls = parts.flatMap((part) => (part.type === "tool_call" ? [toCall(part)] : []));
  if (calls.length > 0) return [{ role: "assistant", content: text === "" ? null : text, tool_calls: calls }];
  return text === "" ? [] : [{ role: "assistant", content: text }];
}

function toCall(call: ToolCall): WireCall {
  return { id: wireId(call.id), type: "function", function: { name: call.name, arguments: objectText(call.input) } };
}

function toResult(result: ToolResult): WireMessage {
  return { role: "tool", tool_call_id: wireId(result.id), content: resultText(result) };
}

/** The format cannot mark a result as an error, so its text does. */
export function resultText({ content, isError }: ToolResult): string {
  const text = content === "" ? "(no output)" : content;
  return isError ? `Error: ${text}` : text;
}

const maxIdChars = 40;

/** OpenAI refuses longer ids, which other servers generate. */
export function wireId(id: string): string {
  return id.length <= maxIdChars ? id : `call_${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;
}

/**
 * The unchanged arguments if they are an object. Servers that insert them into a template parse them and fail on
 * anything else.
 */
export function objectText(json: string): string {
  return parseJsonObject(json) === undefined ? "{}" : json;
}

const imageTypes: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);

/**
 * The content of a user message, without reasoning and other providers' blocks. Tool results are separate messages and
 * can contain text only, so their attachments are included here.
 */
export function toContent(
  parts: readonly Part[],
  dialect: Pick<Dialect, "images" | "pdfs">,
  contents: ModelRequest["contents"],
): ContentPart[] {
  return parts.flatMap<ContentPart>((part) => {
    if (part.type === "blob") return renderAttachment(part, contents, dialect).flatMap(shownPart);
    if (part.type === "tool_result") {
      return (part.attachments ?? []).flatMap((each) => renderAttachment(each, contents, dialect)).flatMap(shownPart);
    }
    if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
    if (part.type !== "binary") return [];
    const url = `data:${part.mediaType};base64,${part.data}`;
    if (dialect.images && imageTypes.has(part.mediaType)) return [{ type: "image_url", image_url: { url } }];
    if (dialect.pdfs && part.mediaType === "application/pdf") {
      return [{ type: "file", file: { filename: part.name ?? "document.pdf", file_data: url } }];
    }
    const text = `[attachment ${part.name ?? "without a name"}, ${part.mediaType}: this type cannot be shown to you]`;
    return [{ type: "text", text }];
  });
}

function shownPart(shown: RenderedAttachment): ContentPart[] {
  switch (shown.kind) {
    case "image":
      return [{ type: "image_url", image_url: { url: `data:${shown.mediaType};base64,${shown.data}` } }];
    case "pdf": {
      const url = `data:application/pdf;base64,${shown.data}`;
      return [{ type: "file", file: { filename: shown.name, file_data: url } }];
    }
    case "text":
      return shown.text === "" ? [] : [{ type: "text", text: shown.text }];
    default:
      return shown satisfies never;
  }
}

/** Text-only content as a string, because not every server accepts lists. */
function plain(content: ContentPart[]): string | ContentPart[] {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return texts.length === content.length ? texts.join("\n\n") : content;
}
