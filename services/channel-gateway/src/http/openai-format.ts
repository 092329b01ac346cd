// The format of OpenAI's chat completions: parses a request, and serializes an answer, complete or streamed. Pure; independent of turns.
import type { ExitReason, Usage } from "@parley/contracts";
import { z } from "zod";
import { HttpError, invalid } from "./errors.ts";

export const modelId = "parley";

/** The supported fields of the body. Other OpenAI fields are ignored, except unsupported ones that would change the answer. */
export const ChatBody = z.looseObject({
  model: z.string().nullish(),
  /** Only the last message of role `user` is used; Parley stores the history. */
  messages: z.array(z.unknown()).min(1),
  /** Names the conversation; without it the request gets its own session. */
  user: z.string().min(1).max(512).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.number().nullish(),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
});

const UserMessage = z.looseObject({
  role: z.literal("user"),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]),
});

export interface ChatRequest {
  text: string;
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
  if ((request.response_format?.type ?? "text") !== "text") {
    throw unsupported("response_format", "answers are text; omit `response_format`");
  }
  return {
    text: lastUserText(request.messages),
    conversation: request.user ?? undefined,
    model: request.model ?? modelId,
    stream: request.stream ?? false,
    includeUsage: request.stream_options?.include_usage ?? false,
  };
}

function lastUserText(messages: readonly unknown[]): string {
  const index = messages.findLastIndex(
    (message) => typeof message === "object" && message !== null && "role" in message && message.role === "user",
  );
  if (index < 0) throw unsupported("messages", "`messages` contains no message of role user");
  const parsed = UserMessage.safeParse(messages[index]);
  if (!parsed.success) {
    throw unsupported(`messages.${index}.content`, "`content` must be a string or an array of parts");
  }
  const { content } = parsed.data;
  const text =
    typeof content === "string" ? content : content.map((part, at) => textOfPart(part, index, at)).join("\n");
  if (text === "") throw unsupported(`messages.${index}.content`, "the last user message is empty");
  return text;
}

function textOfPart(part: { type: string; text?: string | undefined }, index: number, at: number): string {
  if (part.type === "text" && part.text !== undefined) return part.text;
  throw unsupported(`messages.${index}.content.${at}`, `content of type "${part.type}" is not supported, only text`);
}

function unsupported(param: string, message: string): HttpError {
  return new HttpError(400, "unsupported_value", `${param}: ${message}`, { param });
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
