// The format of OpenAI's chat completions: parses a request, and serializes an answer, complete or streamed. Pure; independent of turns.
import type { ExitReason, Usage } from "@parley/contracts";
import { z } from "zod";
import { invalid } from "./errors.ts";
import { readFormat, readStop, requirementsOf } from "./openai-answer.ts";
import {
  agentRequest,
  fileOf,
  unsupported,
  type AgentRequest,
  type RequestFile,
  type RequestMessage,
} from "./openai-input.ts";

export const modelId = "parley";

/** The supported fields of the body. Other OpenAI fields are ignored, except unsupported ones that would change the answer. */
export const ChatBody = z.looseObject({
  model: z.string().nullish(),
  /** Earlier messages are used when the request begins a session; system and developer messages are instructions. */
  messages: z.array(z.unknown()).min(1),
  /** Names the conversation; without it the request gets its own session. */
  user: z.string().min(1).max(512).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.number().nullish(),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  /** The value must be an object for `json_object`, and match the schema for `json_schema`. */
  response_format: z.looseObject({ type: z.string(), json_schema: z.unknown().optional() }).nullish(),
  /** Up to four texts; the answer ends before the first of them. */
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  /** Tokens that all model calls of the turn may generate together. */
  max_completion_tokens: z.number().int().positive().nullish(),
  /** The earlier name of `max_completion_tokens`. */
  max_tokens: z.number().int().positive().nullish(),
  tool_choice: z.unknown().optional(),
  logprobs: z.boolean().nullish(),
  modalities: z.array(z.string()).nullish(),
});

const Part = z.looseObject({ type: z.string(), text: z.string().optional() });
const ChatMessage = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant"]),
  content: z.union([z.string(), z.array(Part)]).nullish(),
  tool_calls: z.array(z.unknown()).nullish(),
});

/** Throws HttpError 400 for a choice that requires a tool of the caller. */
export function refuseToolChoice(choice: unknown): void {
  if (choice == null || choice === "auto" || choice === "none") return;
  throw unsupported("tool_choice", "the agent uses its own tools; omit `tool_choice`");
}

export interface ChatRequest extends AgentRequest {
  /** Undefined when the request names none. */
  conversation: string | undefined;
  model: string;
  stream: boolean;
  includeUsage: boolean;
}

export const defaultConversation = "default";

/** Throws HttpError 400 that names the unsupported value. */
export function readChatRequest(body: unknown): ChatRequest {
  const parsed = ChatBody.safeParse(body);
  if (!parsed.success) throw invalid(parsed.error);
  const request = parsed.data;
  if ((request.n ?? 1) !== 1) throw unsupported("n", "only n = 1 is supported");
  if ((request.tools?.length ?? 0) > 0) throw unsupported("tools", "the agent uses its own tools; omit `tools`");
  if ((request.functions?.length ?? 0) > 0) {
    throw unsupported("functions", "the agent uses its own tools; omit `functions`");
  }
  refuseToolChoice(request.tool_choice);
  if (request.logprobs === true)
    throw unsupported("logprobs", "token probabilities are not available; omit `logprobs`");
  if (request.modalities?.some((each) => each !== "text") === true)
    throw unsupported("modalities", "answers are text; omit `modalities`");
  const { type, json_schema: schema } = request.response_format ?? { type: "text" };
  const given = typeof schema === "object" && schema !== null ? schema : {};
  const format = readFormat({ ...given, type }, "response_format");
  const content = agentRequest(request.messages.map(readMessage), "messages");
  const maxTokens = request.max_completion_tokens ?? request.max_tokens;
  return {
    ...content,
    instructions: [...content.instructions, ...(format === undefined ? [] : [format.instructions])],
    answer: requirementsOf(maxTokens, format, readStop(request.stop)),
    conversation: request.user ?? undefined,
    model: request.model ?? modelId,
    stream: request.stream ?? false,
    includeUsage: request.stream_options?.include_usage ?? false,
  };
}

function readMessage(message: unknown, index: number): RequestMessage {
  const param = `messages.${index}`;
  const role = typeof message === "object" && message !== null && "role" in message ? message.role : undefined;
  if (role === "tool" || role === "function")
    throw unsupported(param, "results of tools are not supported: the agent uses its own tools");
  const parsed = ChatMessage.safeParse(message);
  if (!parsed.success) throw invalid(parsed.error, param);
  const { content, tool_calls: calls, role: givenRole } = parsed.data;
  if ((calls?.length ?? 0) > 0)
    throw unsupported(`${param}.tool_calls`, "calls of tools are not supported: the agent uses its own tools");
  const as = givenRole === "system" || givenRole === "developer" ? "instructions" : givenRole;
  if (typeof content === "string") return { role: as, text: content, files: [] };
  const parts = (content ?? []).map((part, at) => readPart(part, `${param}.content.${at}`));
  const text = parts.flatMap((part) => (typeof part === "string" ? [part] : [])).join("\n");
  return { role: as, text, files: parts.filter((part) => typeof part !== "string") };
}

const ImagePart = z.looseObject({ image_url: z.looseObject({ url: z.string() }) });
const FilePart = z.looseObject({
  file: z.looseObject({ file_data: z.string().optional(), filename: z.string().nullish() }),
});

function readPart(part: z.infer<typeof Part>, param: string): string | RequestFile {
  if (part.type === "text" && part.text !== undefined) return part.text;
  if (part.type === "refusal") return "";
  if (part.type === "image_url") return fileOf(ImagePart.safeParse(part).data?.image_url.url, "image", param);
  if (part.type === "file") {
    const { file_data: data, filename } = FilePart.safeParse(part).data?.file ?? {};
    return fileOf(data, "file", param, filename);
  }
  throw unsupported(param, `content of type "${part.type}" is not supported, only text, image_url and file`);
}

export type FinishReason = "stop" | "length" | "content_filter";

export function finishReason(exit: ExitReason): FinishReason {
  if (exit === "max_tokens") return "length";
  return exit === "refusal" ? "content_filter" : "stop";
}

function openaiUsage(usage: Usage): object {
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.outputTokens,
    total_tokens: prompt + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cacheReadTokens },
  };
}

export interface CompletionHead {
  id: string;
  created: number;
  model: string;
}

export function completion(head: CompletionHead, text: string, finish: FinishReason, usage: Usage): object {
  return {
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text, refusal: null },
        logprobs: null,
        finish_reason: finish,
      },
    ],
    usage: openaiUsage(usage),
  };
}

/** The frames of a streamed completion; their common part is serialized once. */
export function chunkFrames(head: CompletionHead) {
  const common = JSON.stringify({
    id: head.id,
    object: "chat.completion.chunk",
    created: head.created,
    model: head.model,
  }).slice(0, -1);
  const start = `data: ${common},"choices":[{"index":0,"delta":`;
  return {
    role: () => `${start}{"role":"assistant","content":""},"finish_reason":null}]}\n\n`,
    text: (text: string) => `${start}{"content":${JSON.stringify(text)}},"finish_reason":null}]}\n\n`,
    finish: (reason: FinishReason) => `${start}{},"finish_reason":"${reason}"}]}\n\n`,
    usage: (usage: Usage) => `data: ${common},"choices":[],"usage":${JSON.stringify(openaiUsage(usage))}}\n\n`,
    error: (body: object) => `data: ${JSON.stringify(body)}\n\n`,
    done: () => "data: [DONE]\n\n",
  };
}
export type ChunkFrames = ReturnType<typeof chunkFrames>;
