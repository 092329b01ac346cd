// The format of OpenAI's Responses API: parses a request, and serializes a response, complete or as streamed events. Pure.
import type { ExitReason, TurnState, Usage } from "@parley/contracts";
import { z } from "zod";
import { invalid } from "./errors.ts";
import { modelId, refuseToolChoice } from "./openai-format.ts";
import { readFormat, requirementsOf } from "./openai-answer.ts";
import {
  agentRequest,
  fileOf,
  unsupported,
  type AgentRequest,
  type RequestFile,
  type RequestMessage,
} from "./openai-input.ts";

/** The supported fields of the body. Other OpenAI fields are ignored, except unsupported ones that would change the answer. */
export const ResponseBody = z.looseObject({
  model: z.string().nullish(),
  /** A text, or messages; earlier messages are used when the request begins a session. */
  input: z.union([z.string().min(1), z.array(z.looseObject({ type: z.string().optional() })).min(1)]),
  instructions: z.string().nullish(),
  /** Continues the session of that response; of an earlier one, a copy of it. */
  previous_response_id: z.string().nullish(),
  /** Names the conversation; without it and `previous_response_id` the request gets its own session. */
  user: z.string().min(1).max(512).nullish(),
  stream: z.boolean().nullish(),
  tools: z.array(z.unknown()).nullish(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
  /** Tokens that all model calls of the turn may generate together. */
  max_output_tokens: z.number().int().positive().nullish(),
  truncation: z.enum(["auto", "disabled"]).nullish(),
  tool_choice: z.unknown().optional(),
  store: z.boolean().nullish(),
  background: z.boolean().nullish(),
  conversation: z.unknown().optional(),
  prompt: z.unknown().optional(),
  metadata: z.record(z.string(), z.string()).nullish(),
});

export interface ResponseRequest extends AgentRequest {
  conversation: string | undefined;
  /** The inbox id of the previous message. */
  previous: string | undefined;
  stream: boolean;
  /** The caller does not wait for the answer. */
  background: boolean;
  head: ResponseHead;
}

/** Fields of the request that the response repeats. */
interface ResponseHead {
  background: boolean | null;
  model: string;
  instructions: string | null;
  previous_response_id: string | null;
  user: string | null;
  metadata: Readonly<Record<string, string>>;
  max_output_tokens: number | null;
  text: { format: object };
  truncation: "auto" | "disabled";
}

/** The head of a response whose request is not known: it was not stored. */
export const unknownHead: ResponseHead = {
  background: null,
  model: modelId,
  instructions: null,
  previous_response_id: null,
  user: null,
  metadata: {},
  max_output_tokens: null,
  text: { format: { type: "text" } },
  truncation: "disabled",
};

const prefix = "resp_";

function responseId(inboxId: string): string {
  return `${prefix}${inboxId}`;
}

/** The inbox id in the id of a response; undefined for any other text. */
export function inboxIdOf(id: string): string | undefined {
  const inboxId = id.startsWith(prefix) ? id.slice(prefix.length) : "";
  return z.uuid().safeParse(inboxId).success ? inboxId : undefined;
}

/** Throws HttpError 400 that names the unsupported value. */
export function readResponseRequest(body: unknown): ResponseRequest {
  const parsed = ResponseBody.safeParse(body);
  if (!parsed.success) throw invalid(parsed.error);
  const request = parsed.data;
  if ((request.tools?.length ?? 0) > 0) throw unsupported("tools", "the agent uses its own tools; omit `tools`");
  refuseToolChoice(request.tool_choice);
  if (request.store === false) throw unsupported("store", "Parley stores every turn; omit `store`");
  if (request.conversation != null)
    throw unsupported("conversation", "name the conversation by `user`, or continue with `previous_response_id`");
  if (request.prompt != null) throw unsupported("prompt", "prompt templates are not supported; send `instructions`");
  const { previous_response_id: before, instructions, user } = request;
  if (before != null && user != null)
    throw unsupported("user", "use either `previous_response_id` or `user`: each selects the session");
  const previous = before == null ? undefined : inboxIdOf(before);
  if (before != null && previous === undefined)
    throw unsupported("previous_response_id", `there is no response "${before}"`);
  const { input } = request;
  const items: RequestMessage[] =
    typeof input === "string" ? [{ role: "user", text: input, files: [] }] : input.flatMap(readItem);
  const own: RequestMessage[] = instructions == null ? [] : [{ role: "instructions", text: instructions, files: [] }];
  const format = readFormat(request.text?.format, "text.format");
  const content = agentRequest([...own, ...items], "input");
  return {
    ...content,
    instructions: [...content.instructions, ...(format === undefined ? [] : [format.instructions])],
    answer: requirementsOf(request.max_output_tokens, format),
    conversation: user ?? undefined,
    previous,
    stream: request.stream ?? false,
    background: request.background ?? false,
    head: {
      background: request.background ?? false,
      model: request.model ?? modelId,
      instructions: instructions ?? null,
      previous_response_id: before ?? null,
      user: user ?? null,
      metadata: request.metadata ?? {},
      max_output_tokens: request.max_output_tokens ?? null,
      text: { format: request.text?.format ?? { type: "text" } },
      truncation: request.truncation ?? "disabled",
    },
  };
}

const Part = z.looseObject({ type: z.string(), text: z.string().optional() });
const Message = z.looseObject({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content: z.union([z.string(), z.array(Part)]),
});

function readItem(item: { type?: string | undefined }, index: number): RequestMessage[] {
  const param = `input.${index}`;
  // Clients return it unchanged; the reasoning of earlier turns is stored.
  if (item.type === "reasoning") return [];
  if (item.type !== undefined && item.type !== "message") {
    throw unsupported(
      param,
      `items of type "${item.type}" are not supported: the agent uses its own tools; send messages`,
    );
  }
  const parsed = Message.safeParse(item);
  if (!parsed.success) throw invalid(parsed.error, param);
  const { role, content } = parsed.data;
  const as = role === "system" || role === "developer" ? "instructions" : role;
  if (typeof content === "string") return [{ role: as, text: content, files: [] }];
  const parts = content.map((part, at) => readPart(part, `${param}.content.${at}`));
  const text = parts.flatMap((part) => (typeof part === "string" ? [part] : [])).join("\n");
  return [{ role: as, text, files: parts.filter((part) => typeof part !== "string") }];
}

const FileFields = z.looseObject({
  image_url: z.string().nullish(),
  file_data: z.string().nullish(),
  filename: z.string().nullish(),
});

function readPart(part: z.infer<typeof Part>, param: string): string | RequestFile {
  const { type, text } = part;
  if ((type === "input_text" || type === "output_text" || type === "text") && text !== undefined) return text;
  if (type === "refusal") return "";
  const fields = FileFields.safeParse(part).data ?? {};
  if (type === "input_image") return fileOf(fields.image_url, "image", param);
  if (type === "input_file") return fileOf(fields.file_data, "file", param, fields.filename);
  throw unsupported(param, `content of type "${type}" is not supported, only input_text, input_image and input_file`);
}

/** The end of a turn. */
export interface ResponseEnd {
  /** Of the turn. */
  state: Exclude<TurnState, "running">;
  text: string;
  exitReason: ExitReason;
  usage: Usage;
}

export function messageItem(inboxId: string, { text, exitReason }: ResponseEnd) {
  const part =
    exitReason === "refusal"
      ? { type: "refusal", refusal: text }
      : { type: "output_text", text, annotations: [], logprobs: [] };
  const status = exitReason === "max_tokens" ? "incomplete" : "completed";
  return { type: "message", id: `msg_${inboxId}`, status, role: "assistant", content: [part] };
}

function usageOf(usage: Usage) {
  const input = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cacheReadTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: input + usage.outputTokens,
  };
}

export interface ResponseIdentity {
  inboxId: string;
  /** Seconds since 1970. */
  createdAt: number;
  head: ResponseHead;
}

/** The answer is whole: it was neither cut off nor stopped. */
export function isComplete({ state, exitReason }: ResponseEnd): boolean {
  return state !== "cancelled" && exitReason !== "max_tokens";
}

function statusOf(end: ResponseEnd | { failure: string } | "queued" | null) {
  if (end === null) return "in_progress";
  if (end === "queued") return "queued";
  if ("failure" in end) return "failed";
  if (end.state === "cancelled") return "cancelled";
  return isComplete(end) ? "completed" : "incomplete";
}

/** A response. `end` null: it is in progress; `queued`: its turn has not begun. */
export function responseObject(
  { inboxId, createdAt, head }: ResponseIdentity,
  end: ResponseEnd | { failure: string } | "queued" | null,
): object {
  const failure = typeof end === "object" && end !== null && "failure" in end ? end.failure : null;
  const done = typeof end === "object" && end !== null && "text" in end && end.state !== "cancelled" ? end : null;
  return {
    id: responseId(inboxId),
    object: "response",
    created_at: createdAt,
    status: statusOf(end),
    error: failure === null ? null : { code: "server_error", message: failure },
    incomplete_details: done?.exitReason === "max_tokens" ? { reason: "max_output_tokens" } : null,
    ...head,
    output: done === null ? [] : [messageItem(inboxId, done)],
    usage: done === null ? null : usageOf(done.usage),
    parallel_tool_calls: true,
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: null,
    tool_choice: "auto",
    tools: [],
    top_p: null,
  };
}
