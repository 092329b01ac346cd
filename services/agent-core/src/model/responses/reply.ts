// Builds one reply from the events of OpenAI's Responses API; pure. Reasoning and unknown items are kept as the server sent them.
import type { Part, Usage } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { z } from "zod";
import { errorIn, plainError, streamError } from "../openai/errors.ts";
import { toolName } from "../openai/reply.ts";
import { ModelError, type ModelDelta, type ModelReply, type StopReason } from "../provider.ts";
import type { EventSink, SseEvent } from "../sse.ts";

const text = z.string().nullish();
const count = z.number().int().nonnegative().nullish().catch(null);

const Content = z.object({ type: z.string(), text, refusal: text });
const Summary = z.object({ text: z.string() });
const ItemFields = z.object({
  type: z.string(),
  status: text,
  call_id: text,
  name: text,
  arguments: text,
  content: z.array(Content).nullish().catch(null),
  summary: z.array(Summary).nullish().catch(null),
  encrypted_content: text,
});
/** The fields that are read, and the whole item as JSON with its keys in the server's order. */
const Item = z.unknown().transform((given, context) => {
  const { data, error } = ItemFields.safeParse(given);
  if (data !== undefined) return { ...data, raw: JSON.stringify(given) };
  context.addIssue({ code: "custom", message: z.prettifyError(error) });
  return z.NEVER;
});
const Response = z.object({
  object: z.literal("response").optional(),
  model: text,
  status: text,
  error: z.unknown().optional(),
  incomplete_details: z.object({ reason: text }).nullish().catch(null),
  output: z.array(Item).nullish(),
  usage: z
    .object({
      input_tokens: count,
      output_tokens: count,
      input_tokens_details: z.object({ cached_tokens: count }).nullish().catch(null),
      output_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(null),
    })
    .nullish()
    .catch(null),
});
const Event = z.object({
  type: z.string().optional(),
  output_index: z.number().int().nonnegative().optional(),
  delta: z.string().optional().catch(undefined),
  item: Item.optional(),
  response: Response.optional(),
});

type Item = z.infer<typeof Item>;
type Response = z.infer<typeof Response>;

export interface ReplyOptions {
  /** The requested model, used when the server does not name the one that answers. */
  model: string;
  /** The model with its provider's prefix: only it receives its items again. */
  origin: string;
  /** Ids of the calls in the prompt, which must not be reused. */
  takenIds: Iterable<string>;
  newId(): string;
}

/** An item with what the stream has sent of it. */
interface OpenItem {
  item: Item;
  /** The item is final. */
  closed: boolean;
  written: string;
  /** The call's id in the reply; empty for other items. */
  callId: string;
}

/** Collects one reply from stream events. */
export class ResponseBuilder implements EventSink {
  done = false;
  readonly #options: ReplyOptions;
  readonly #taken: Set<string>;
  readonly #items: OpenItem[] = [];
  #response: Response | undefined;

  constructor(options: ReplyOptions) {
    this.#options = options;
    this.#taken = new Set(options.takenIds);
  }

  /** Nothing follows the event that completes a response. */
  get complete(): boolean {
    return this.done;
  }

  add(event: SseEvent): ModelDelta[] {
    if (event.data.trim() === "[DONE]") return [];
    const data = parseJson(event.data);
    if (data === undefined) throw new ModelError("connection", "the model's stream ended inside an event");
    if (isErrorEvent(event, data))
      throw streamError(errorIn({ error: data }) ?? errorIn(data) ?? plainError(event.data));
    // Servers that do not stream send the response itself.
    const whole = Response.required({ object: true }).safeParse(data);
    if (whole.success) return this.#end(whole.data);
    const parsed = Event.safeParse(data);
    if (!parsed.success) {
      const where = parsed.error.issues[0]?.path.join(".") ?? "";
      throw new ModelError("invalid", `the model's server sent something that is no event of a response (${where})`);
    }
    const { type = event.name, output_index: index = 0, delta = "", item, response } = parsed.data;
    switch (type) {
      case "response.output_item.added":
        if (item !== undefined) this.#open(index, item);
        return [];
      case "response.output_item.done":
        return item === undefined ? [] : this.#close(index, item);
      case "response.output_text.delta":
      case "response.refusal.delta":
        return this.#write(index, { type: "text", text: delta });
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#write(index, { type: "reasoning", text: delta });
      case "response.function_call_arguments.delta":
        return this.#writeCall(index, delta);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return response === undefined ? [] : this.#end(response);
      default:
        return [];
    }
  }

  /** Call it once the reply is complete. */
  reply(): ModelReply {
    const parts = this.#items.flatMap((open) => this.#parts(open));
    const status = this.#response?.status ?? "completed";
    const reason = this.#response?.incomplete_details?.reason ?? "";
    return {
      parts,
      stopReason: this.#stopReason(status, reason, parts),
      rawStopReason: reason === "" ? status : `${status}: ${reason}`,
      usage: toUsage(this.#response?.usage),
      model: this.#response?.model || this.#options.model,
    };
  }

  #open(index: number, item: Item): OpenItem {
    const known = this.#items[index];
    if (known !== undefined) return known;
    const callId = item.type === "function_call" ? this.#newCallId(item.call_id ?? "") : "";
    const open = { item, closed: false, written: "", callId };
    this.#items[index] = open;
    return open;
  }

  #newCallId(given: string): string {
    const id = given === "" || this.#taken.has(given) ? this.#options.newId() : given;
    this.#taken.add(id);
    return id;
  }

  /** The final item. Text that was not streamed is one delta. */
  #close(index: number, item: Item): ModelDelta[] {
    const open = this.#open(index, item);
    if (open.closed) return [];
    open.item = item;
    open.closed = true;
    if (open.written !== "") return [];
    if (item.type === "message") return textDelta("text", messageText(item));
    if (item.type === "reasoning") return textDelta("reasoning", reasoningText(item));
    return [];
  }

  #write(index: number, delta: Extract<ModelDelta, { type: "text" | "reasoning" }>): ModelDelta[] {
    if (delta.text === "") return [];
    this.#open(index, { type: delta.type === "text" ? "message" : "reasoning", raw: "" }).written += delta.text;
    return [delta];
  }

  #writeCall(index: number, delta: string): ModelDelta[] {
    const open = this.#items[index];
    if (open === undefined || delta === "") return [];
    open.written += delta;
    return [{ type: "tool_input", id: open.callId, name: toolName(open.item.name ?? ""), text: delta }];
  }

  /** Throws ModelError for a failed response. */
  #end(response: Response): ModelDelta[] {
    if (response.status === "failed") throw streamError(errorIn({ error: response.error }) ?? plainError(""));
    this.#response = response;
    this.done = true;
    return (response.output ?? []).flatMap((item, index) => this.#close(index, item));
  }

  #parts({ item, closed, written, callId }: OpenItem): Part[] {
    switch (item.type) {
      case "message": {
        const text = messageText(item) || written;
        return text === "" ? [] : [{ type: "text", text }];
      }
      case "reasoning": {
        const thought = reasoningText(item) || written;
        // Without its encrypted content the server could not read it again, because it stores nothing.
        const raw = closed && item.encrypted_content ? { raw: item.raw } : {};
        return thought === "" && !("raw" in raw)
          ? []
          : [{ type: "reasoning", text: thought, ...raw, model: this.#options.origin }];
      }
      case "function_call": {
        // A call that was cut off has incomplete arguments.
        if (!closed || item.status === "incomplete") return [];
        const input = item.arguments || written;
        return [{ type: "tool_call", id: callId, name: toolName(item.name ?? ""), input: input.trim() || "{}" }];
      }
      default:
        return closed ? [{ type: "provider", provider: this.#options.origin, raw: item.raw }] : [];
    }
  }

  #stopReason(status: string, reason: string, parts: readonly Part[]): StopReason {
    if (reason === "max_output_tokens") return "max_tokens";
    if (reason === "content_filter" || this.#items.some(({ item }) => isRefusal(item))) return "refusal";
    if (parts.some(({ type }) => type === "tool_call")) return "tool_use";
    return status === "completed" ? "end_turn" : "other";
  }
}

const ErrorEvent = z.object({ type: z.literal("error") });

function isErrorEvent({ name }: SseEvent, data: unknown): boolean {
  return name === "error" || ErrorEvent.safeParse(data).success;
}

function textDelta(type: "text" | "reasoning", text: string): ModelDelta[] {
  return text === "" ? [] : [{ type, text }];
}

function messageText({ content }: Item): string {
  return (content ?? []).map((part) => part.text ?? part.refusal ?? "").join("");
}

function isRefusal({ content }: Item): boolean {
  return (content ?? []).some(({ type }) => type === "refusal");
}

/** The summary, or the text itself where a server shows it. */
function reasoningText({ summary, content }: Item): string {
  const summaries = (summary ?? []).map((part) => part.text);
  return summaries.length > 0 ? summaries.join("\n\n") : (content ?? []).map((part) => part.text ?? "").join("");
}

/** OpenAI includes cached tokens in the input tokens; Parley counts them separately. */
function toUsage(usage: Response["usage"]): Usage | null {
  if (typeof usage?.input_tokens !== "number" && typeof usage?.output_tokens !== "number") return null;
  const inputTokens = usage.input_tokens ?? 0;
  const cacheReadTokens = Math.min(inputTokens, usage.input_tokens_details?.cached_tokens ?? 0);
  const reasoningTokens = usage.output_tokens_details?.reasoning_tokens ?? undefined;
  return {
    inputTokens: inputTokens - cacheReadTokens,
    outputTokens: usage.output_tokens ?? 0,
    cacheReadTokens,
    cacheWriteTokens: 0,
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
  };
}
