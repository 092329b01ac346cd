// Converts Parley's prompt to a request of OpenAI's Responses API; pure. The server stores nothing (`store: false`), so the whole
// conversation is sent each time, with the model's encrypted reasoning items: without them it would lose its thoughts between tool calls.
import { parseJsonObject } from "@parley/kit";
import type { Effort, Part } from "@parley/contracts";
import { highestSupportedEffort } from "../effort.ts";
import { objectText, resultText, toContent, wireId, type ContentPart } from "../openai/wire.ts";
import type { ModelRequest, PromptMessage, PromptTool } from "../provider.ts";
import { withExamples } from "../tool-examples.ts";
import type { Dialect } from "./dialect.ts";

type InputContent =
  | { type: "input_text"; text: string }
  | { type: "input_image"; image_url: string; detail: "auto" }
  | { type: "input_file"; filename: string; file_data: string };

export type InputItem =
  | { type: "message"; role: "user"; content: InputContent[] }
  | { type: "message"; role: "assistant"; content: { type: "output_text"; text: string }[] }
  | { type: "function_call"; call_id: string; name: string; arguments: string }
  | { type: "function_call_output"; call_id: string; output: string }
  /** An item of the model, unchanged. */
  | Record<string, unknown>;

export interface ResponsesRequest {
  model: string;
  instructions?: string;
  input: InputItem[];
  tools?: { type: "function"; name: string; description: string; parameters: Record<string, unknown>; strict: false }[];
  stream: true;
  store: false;
  include?: ["reasoning.encrypted_content"];
  reasoning?: { effort?: Effort; summary?: "auto" };
  max_output_tokens: number;
}

export interface WireOptions {
  model: string;
  /** The model with its provider's prefix: only its own items are sent back. */
  origin: string;
  /** False: reasoning items are left out, because the server could not read them. */
  withReasoning: boolean;
}

/** The API refuses less. */
const leastOutputTokens = 16;

export function toRequest(request: ModelRequest, options: WireOptions, dialect: Dialect): ResponsesRequest {
  const effort = highestSupportedEffort(request.effort, dialect.efforts);
  const reasoning = {
    ...(effort === undefined ? {} : { effort }),
    ...(dialect.summaries ? { summary: "auto" as const } : {}),
  };
  return {
    model: options.model,
    ...(request.system === "" ? {} : { instructions: request.system }),
    input: request.messages.flatMap((message) => toItems(message, options, dialect, request.contents)),
    ...(request.tools.length === 0 ? {} : { tools: request.tools.map(toTool) }),
    stream: true,
    store: false,
    ...(dialect.encrypted ? { include: ["reasoning.encrypted_content"] } : {}),
    ...(Object.keys(reasoning).length === 0 ? {} : { reasoning }),
    max_output_tokens: Math.max(leastOutputTokens, request.maxOutputTokens),
  };
}

function toTool(tool: PromptTool): NonNullable<ResponsesRequest["tools"]>[number] {
  const parameters = { properties: {}, ...tool.inputSchema, type: "object" };
  return { type: "function", name: tool.name, description: withExamples(tool), parameters, strict: false };
}

function toItems(
  { role, parts }: PromptMessage,
  options: WireOptions,
  dialect: Dialect,
  contents: ModelRequest["contents"],
): InputItem[] {
  if (role === "assistant") return withoutLoneReasoning(parts.flatMap((part) => ownItems(part, options)));
  const results = parts.flatMap((part): InputItem[] =>
    part.type === "tool_result"
      ? [{ type: "function_call_output", call_id: wireId(part.id), output: resultText(part) }]
      : [],
  );
  const content = toContent(parts, dialect, contents).map(inputContent);
  return content.length === 0 ? results : [...results, { type: "message", role: "user", content }];
}

/** The items of a part that a model wrote. */
function ownItems(part: Part, { origin, withReasoning }: WireOptions): InputItem[] {
  switch (part.type) {
    case "text":
      return part.text === ""
        ? []
        : [{ type: "message", role: "assistant", content: [{ type: "output_text", text: part.text }] }];
    case "tool_call":
      return [{ type: "function_call", call_id: wireId(part.id), name: part.name, arguments: objectText(part.input) }];
    case "reasoning":
      return withReasoning && part.raw !== undefined && part.model === origin ? rawItem(part.raw) : [];
    case "provider":
      return part.provider === origin ? rawItem(part.raw) : [];
    default:
      return [];
  }
}

function rawItem(raw: string): InputItem[] {
  const item = parseJsonObject(raw);
  return item === undefined ? [] : [item];
}

/** The API refuses reasoning that no item follows, as after an answer that was cut off. */
function withoutLoneReasoning(items: InputItem[]): InputItem[] {
  const last = items.findLastIndex(({ type }) => type !== "reasoning");
  return items.slice(0, last + 1);
}

function inputContent(part: ContentPart): InputContent {
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text };
    case "image_url":
      return { type: "input_image", image_url: part.image_url.url, detail: "auto" };
    case "file":
      return { type: "input_file", ...part.file };
    default:
      return part satisfies never;
  }
}
