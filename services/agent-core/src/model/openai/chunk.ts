// Parses one event of a chat completion stream, in the variants of the many compatible servers; pure.
import type { Usage } from "@parley/contracts";
import { z } from "zod";
import { streamError, errorIn, plainError } from "./errors.ts";
import type { SseEvent } from "./sse.ts";
import { ModelError } from "../provider.ts";

const text = z.string().nullish();
const count = z.number().int().nonnegative().nullish().catch(null);

const CallDelta = z.object({
  index: z.number().nullish().catch(null),
  id: text.catch(null),
  /** `arguments`: text in pieces, or an object. */
  function: z.object({ name: text, arguments: z.unknown().optional() }).nullish(),
});
/** Text, or text parts: Mistral sends its thinking as such parts. */
const ContentPart = z.object({ type: z.string(), text: text.catch(null), thinking: z.unknown().optional() });
const Delta = z.object({
  content: z.union([z.string(), z.array(ContentPart)]).nullish(),
  refusal: text,
  // DeepSeek, vLLM, llama.cpp and LM Studio use the first field, Ollama and newer vLLM the second. If both are set,
  // they are equal.
  reasoning_content: text.catch(null),
  reasoning: text.catch(null),
  tool_calls: z.array(CallDelta).nullish(),
});
/** `message`: sent by servers that do not stream although a stream was requested. */
const Choice = z.object({ delta: Delta.nullish(), message: Delta.nullish(), finish_reason: text });
const Chunk = z.object({
  error: z.unknown().optional(),
  model: text,
  choices: z.array(Choice).nullish(),
  usage: z
    .object({
      prompt_tokens: count,
      completion_tokens: count,
      prompt_tokens_details: z.object({ cached_tokens: count }).nullish().catch(null),
      completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(null),
    })
    .nullish()
    .catch(null),
});

type Chunk = z.infer<typeof Chunk>;
export type CallDelta = z.infer<typeof CallDelta>;

/** Throws ModelError when the event is an error or invalid. */
export function readChunk(event: SseEvent): Chunk {
  const data = parse(event.data);
  if (event.name === "error") throw streamError(errorIn(data) ?? errorIn({ error: data }) ?? plainError(event.data));
  if (data === undefined) throw new ModelError("connection", "the model's stream ended inside an event");
  const chunk = Chunk.safeParse(data);
  const usual = chunk.success && !isThere(chunk.data.error) && isThere(chunk.data.choices);
  const error = usual ? undefined : errorIn(data);
  if (error !== undefined) throw streamError(error);
  if (chunk.success) return chunk.data;
  const where = chunk.error.issues[0]?.path.join(".") ?? "";
  throw new ModelError("invalid", `the model's server sent something that is not a chat completion (${where})`);
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** The text and the reasoning in a content. */
export function contentOf(content: z.infer<typeof Delta>["content"]): { text: string; reasoning: string } {
  if (typeof content === "string") return { text: content, reasoning: "" };
  const parts = content ?? [];
  return {
    text: parts.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join(""),
    reasoning: parts.map((part) => thinkingIn(part.thinking)).join(""),
  };
}

const Thinking = z.union([z.string(), z.array(z.object({ text: z.string() }))]).catch("");

function thinkingIn(thinking: unknown): string {
  const parsed = Thinking.parse(thinking);
  return typeof parsed === "string" ? parsed : parsed.map((part) => part.text).join("");
}

/**
 * OpenAI includes cached tokens in the prompt tokens; Parley counts them separately. Null when the server reports no
 * usage.
 */
export function toUsage(usage: NonNullable<Chunk["usage"]>): Usage | null {
  if (!isThere(usage.prompt_tokens) && !isThere(usage.completion_tokens)) return null;
  const promptTokens = usage.prompt_tokens ?? 0;
  const cacheReadTokens = Math.min(promptTokens, usage.prompt_tokens_details?.cached_tokens ?? 0);
  const reasoningTokens = usage.completion_tokens_details?.reasoning_tokens ?? undefined;
  return {
    inputTokens: promptTokens - cacheReadTokens,
    outputTokens: usage.completion_tokens ?? 0,
    cacheReadTokens,
    cacheWriteTokens: 0,
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
  };
}
