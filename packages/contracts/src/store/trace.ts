// The times of one turn, and what each of its model calls was asked, from the rows of the store.
import { z } from "zod";
import { efforts } from "../settings/agent.ts";
import { turnStates } from "../turns.ts";
import { ViewRecordSchema } from "../view-record.ts";
import { storeRequest } from "./shared.ts";

/** How long a model call took in all, with retries, and until its first token; null: nothing was streamed. */
export const CallTimingSchema = z.object({
  durationMs: z.number().int().nonnegative(),
  firstTokenMs: z.number().int().nonnegative().nullable(),
});

/** What a model call was asked in addition to the messages of the log: enough to build the same request again. */
export const RequestRecordSchema = z.object({
  /** Of the system prompt and the tools, which `store.prefix.put` stored. */
  prefixHash: z.string(),
  /** Version of the session's view record; 0: the whole log. */
  viewVersion: z.number().int().nonnegative(),
  /** How people's messages were headed; null: they were not. */
  headings: z.object({ timeZone: z.string(), source: z.boolean() }).nullable(),
  /** Earlier tool calls were left out (`context.history = "text_only"`). */
  textOnly: z.boolean(),
  parameters: z.object({
    maxOutputTokens: z.number().int(),
    effort: z.enum(efforts).optional(),
    thinking: z.enum(["off", "adaptive"]).optional(),
    cacheTtl: z.enum(["5m", "1h"]).optional(),
    stopSequences: z.array(z.string()).optional(),
  }),
  /** Digest of the whole request: a request that is built again is exact if it has the same one. */
  digest: z.string(),
});
export type RequestRecord = z.infer<typeof RequestRecordSchema>;

const TraceSpanSchema = z.object({
  /** `queue`: from the message to the turn's start. `send`: from the commit of a text to its delivery. */
  kind: z.enum(["queue", "model", "tool", "approval", "send"]),
  /** The model, tool or channel; empty for `queue`. */
  name: z.string(),
  state: z.string(),
  startedAt: z.string(),
  /** Null: not ended. */
  endedAt: z.string().nullable(),
  /** False: it ended at that time or earlier, because the result of a pure call is stored with the next model call. */
  exact: z.boolean(),
  /** Number of the step within its turn, of model and tool calls. */
  step: z.number().int().optional(),
  /** Of model calls; `inputTokens` includes those of the cache. */
  inputTokens: z.number().int().optional(),
  outputTokens: z.number().int().optional(),
  /** Tokens of the prompt that the provider's cache served, and that were written to it. */
  cacheReadTokens: z.number().int().optional(),
  cacheWriteTokens: z.number().int().optional(),
  /** Millionths of a US dollar, of model calls; null: the price is unknown. */
  costMicros: z.number().int().nullable().optional(),
  /** Milliseconds until the first token, of a model call that streamed one. Omitted: unknown. */
  firstTokenMs: z.number().int().optional(),
});
export type TraceSpan = z.infer<typeof TraceSpanSchema>;

export const turnTrace = storeRequest({
  subject: "store.turn.trace",
  clients: ["channel-gateway"],
  doc: "Report when the parts of a turn began and ended: its queue time, model calls, tool calls, approvals and texts, at most 500 in order. Without an id: the newest turn.",
  input: z.object({ turnId: z.uuid().nullable() }),
  output: z.object({
    turnId: z.string(),
    sessionId: z.string(),
    state: z.enum(turnStates),
    receivedAt: z.string(),
    finishedAt: z.string().nullable(),
    spans: z.array(TraceSpanSchema),
  }),
});

export const stepRequest = storeRequest({
  subject: "store.step.request",
  clients: ["agent-core"],
  doc: "Get what is recorded of the request of one model call, to build it again. NOT_FOUND when the turn has no such model call.",
  input: z.object({ turnId: z.uuid(), n: z.number().int().positive() }),
  output: z.object({
    sessionId: z.string(),
    /** The model that answered. */
    model: z.string(),
    /** Position of the answer in the session's log: the request contains messages before it. */
    messageSeq: z.number().int(),
    /** Null: the call was made by a version that did not record it. */
    record: RequestRecordSchema.nullable(),
    /** The view record that was in effect; null: the whole log, or it is no longer stored. */
    view: ViewRecordSchema.nullable(),
  }),
});
