// OpenAI's chat completions as data: reads a request, words an answer, whole or in pieces. Pure; it knows no turn machinery.
import type { ExitReason, Usage } from "@parley/contracts";
import { z } from "zod";
import { HttpError, invalid } from "./errors.ts";

export const modelId = "parley";

/** What is read of the body. Anything else OpenAI knows is tolerated; what would change the answer and cannot be done is refused. */
export const ChatBody = z.looseObject({
  model: z.string().nullish(),
  /** Only the last message of role `user` is taken; the conversation's history is kept here. */
  messages: z.array(z.unknown()).min(1),
  /** Names the conversation; without it the request has a session of its own. */
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
  /** Undefined where the request names none. */
  conversation: string | undefined;
  model: string;
  stream: boolean;
  includeUsage: boolean;
}

export const defaultConversation = "default";

/** Throws HttpError 400 that names what cannot be done. */
export function readChatRequest(body: unknown): ChatRequest {
  const parsed = ChatBody.safeParse(body);
  if (!parsed.success) throw invalid(parsed.error);
  const request = parsed.data;
  if ((request.n ?? 1) !== 1) throw unsupported("n", "only n = 1 is possible: a conversation has one answer");
  if ((request.tools?.length ?? 0) > 0) throw unsupported("tools", "the agent uses its own tools; leave `tools` out");
  if ((request.functions?.length ?? 0) > 0) {
    throw unsupported("functions", "the agent uses its own tools; leave `functions` out");
  }
  if ((request.response_format?.type ?? "text") !== "text") {
    throw unsupported("response_format", "answers are text; leave `response_format` out");
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
  if (index < 0) throw unsupported("messages", "there is no message of role user in `messages`");
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
  throw unsupported(`messages.${index}.content.${at}`, `content of type "${part.type}" is not taken, only text`);
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

/** The frames of a streamed completion; what they have in common is worded once. */
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
