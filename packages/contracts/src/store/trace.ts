// The times of one turn, from the rows of the store.
import { z } from "zod";
import { turnStates } from "../turns.ts";
import { storeRequest } from "./shared.ts";

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
  /** Of model calls. */
  inputTokens: z.number().int().optional(),
  outputTokens: z.number().int().optional(),
  /** Milliseconds until the first token, of a model call that streamed one. Left out: unknown. */
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
