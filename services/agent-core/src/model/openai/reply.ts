// Builds one reply from the events of a chat completion stream, in the variants of the many compatible servers; pure. They
// differ most in tool calls: in spite of missing or repeated fields, each call gets a name, a unique id and its arguments as text.
import type { Part, ToolCall, Usage } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { z } from "zod";
import { errorIn, plainError, streamError } from "./errors.ts";
import {
  type ModelDelta,
  ModelError,
  type ModelReply,
  type StopReason,
  type TextDelta,
  type ToolInputDelta,
} from "../provider.ts";
import type { SseEvent } from "../sse.ts";
import { ThinkTags, splitOrphan } from "../think-tags.ts";

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
type CallDelta = z.infer<typeof CallDelta>;

/** Throws ModelError when the event is an error or invalid. */
function readChunk(event: SseEvent): Chunk {
  const data = parseJson(event.data);
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

/** The text and the reasoning in a content. */
function contentOf(content: z.infer<typeof Delta>["content"]): { text: string; reasoning: string } {
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
function toUsage(usage: NonNullable<Chunk["usage"]>): Usage | null {
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

interface OpenCall {
  index: number | undefined;
  id: string;
  name: string;
  input: string;
}

export interface ReplyOptions {
  /** The requested model, used when the server does not name the one that answers. */
  model: string;
  /** Ids of the calls in the prompt, which must not be reused. */
  takenIds: Iterable<string>;
  newId(): string;
}

/** Collects one reply from stream events. */
export class ReplyBuilder {
  /** The stream is finished. */
  done = false;
  readonly #options: ReplyOptions;
  readonly #taken: ReadonlySet<string>;
  readonly #calls: OpenCall[] = [];
  #model = "";
  #reasoning = "";
  #text = "";
  #refused = false;
  #rawStopReason: string | undefined;
  #usage: Usage | null = null;
  readonly #tags = new ThinkTags();

  constructor(options: ReplyOptions) {
    this.#options = options;
    this.#taken = new Set(options.takenIds);
  }

  /** Whether the reply is complete; only the usage may follow. */
  get complete(): boolean {
    return this.done || this.#rawStopReason !== undefined;
  }

  /** Throws ModelError when the event is an error or invalid. */
  add(event: SseEvent): ModelDelta[] {
    if (event.data.trim() === "[DONE]") {
      this.done = true;
      return this.#keep(this.#tags.end());
    }
    const { model, choices, usage } = readChunk(event);
    if (this.#model === "") this.#model = model ?? "";
    if (usage !== undefined && usage !== null) this.#usage = toUsage(usage) ?? this.#usage;
    const choice = choices?.[0];
    if (choice === undefined) return [];
    if (choice.finish_reason === "error") throw streamError(plainError(""));
    // Some servers send an empty reason until the end.
    this.#rawStopReason = choice.finish_reason || this.#rawStopReason;
    const delta = choice.delta ?? choice.message;
    if (delta === undefined || delta === null) return [];
    const inputs = (delta.tool_calls ?? []).flatMap((call) => this.#addCall(call));
    const content = contentOf(delta.content);
    const thought = delta.reasoning_content || delta.reasoning || "";
    const shown = this.#say(thought + content.reasoning, content.text, delta.refusal ?? "");
    return [...shown, ...inputs, ...(this.complete ? this.#keep(this.#tags.end()) : [])];
  }

  reply(): ModelReply {
    this.#keep(this.#tags.end());
    const orphan = this.#reasoning === "" ? splitOrphan(this.#text) : undefined;
    const thought = orphan?.reasoning ?? this.#reasoning;
    const answer = orphan?.text ?? this.#text;
    const reasoning: Part[] = thought === "" ? [] : [{ type: "reasoning", text: thought }];
    // Blank text before a call carries no content, and Anthropic's API refuses it.
    const text: Part[] = answer.trim() === "" ? [] : [{ type: "text", text: answer }];
    return {
      parts: [...reasoning, ...text, ...this.#toolCalls()],
      stopReason: this.#stopReason(),
      rawStopReason: this.#rawStopReason ?? "none",
      usage: this.#usage,
      model: this.#model === "" ? this.#options.model : this.#model,
    };
  }

  #say(reasoning: string, content: string, refusal: string): TextDelta[] {
    this.#refused ||= refusal !== "";
    const deltas: TextDelta[] = [
      { type: "reasoning", text: reasoning },
      ...(content === "" ? [] : this.#tags.push(content)),
      { type: "text", text: refusal },
    ];
    return this.#keep(deltas.filter((delta) => delta.text !== ""));
  }

  #keep(deltas: TextDelta[]): TextDelta[] {
    for (const delta of deltas) {
      if (delta.type === "text") this.#text += delta.text;
      else this.#reasoning += delta.text;
    }
    return deltas;
  }

  /** Returns the new part of the arguments, unless the call may get another id in the reply. */
  #addCall(delta: CallDelta): ToolInputDelta[] {
    const index = delta.index ?? undefined;
    const id = delta.id ?? "";
    const name = delta.function?.name ?? "";
    const given = delta.function?.arguments ?? "";
    let call = this.#callFor(index, id);
    if (call === undefined || beginsAnother(call, { id, name, empty: given === "" })) {
      call = { index, id, name, input: "" };
      this.#calls.push(call);
    }
    if (call.id === "") call.id = id;
    if (call.name === "") call.name = name;
    const isText = typeof given === "string";
    const text = isText ? given : JSON.stringify(given);
    call.input = isText ? call.input + text : text;
    const { id: callId, name: tool } = call;
    const hasId =
      callId !== "" && !this.#taken.has(callId) && this.#calls.every((each) => each === call || each.id !== callId);
    return hasId && isText && text !== "" ? [{ type: "tool_input", id: callId, name: toolName(tool), text }] : [];
  }

  /** The call that a delta continues, if any: matched by index, else by id, else the newest. */
  #callFor(index: number | undefined, id: string): OpenCall | undefined {
    if (index !== undefined) return this.#calls.findLast((call) => call.index === index);
    return id === "" ? this.#calls.at(-1) : this.#calls.findLast((call) => call.id === id);
  }

  #toolCalls(): ToolCall[] {
    const taken = new Set(this.#taken);
    return this.#calls.map((call) => {
      const id = call.id === "" || taken.has(call.id) ? this.#options.newId() : call.id;
      taken.add(id);
      return { type: "tool_call", id, name: toolName(call.name), input: call.input.trim() === "" ? "{}" : call.input };
    });
  }

  #stopReason(): StopReason {
    if (this.#rawStopReason === "length") return "max_tokens";
    if (this.#rawStopReason === "content_filter" || this.#refused) return "refusal";
    // Ollama and others report `stop` even when there are calls.
    if (this.#calls.length > 0 || this.#rawStopReason === "tool_calls") return "tool_use";
    return this.#rawStopReason === "stop" ? "end_turn" : "other";
  }
}

/**
 * Whether a delta starts a new call although it matches an existing one, as with servers that send index 0 for every
 * call. Only a delta with a name starts a call: some servers repeat the name in each delta, others send a new id in
 * each.
 */
function beginsAnother(call: OpenCall, piece: { id: string; name: string; empty: boolean }): boolean {
  if (piece.name === "" || call.name === "") return false;
  if (piece.name !== call.name) return true;
  if (piece.id !== "" && call.id !== "" && piece.id !== call.id) return true;
  return !piece.empty && isObject(call.input);
}

function isObject(json: string): boolean {
  const value = parseJson(json);
  return typeof value === "object" && value !== null;
}

/** A name that the API accepts in a later request: models invent others. */
export function toolName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}
