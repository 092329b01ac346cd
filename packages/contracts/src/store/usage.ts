// Model usage and cost by day.
import { z } from "zod";
import { UsageSchema } from "../messages.ts";
import { CostSchema } from "../turns.ts";
import { storeRequest } from "./shared.ts";

const UsageRowSchema = z.object({
  /** UTC, `YYYY-MM-DD`. */
  day: z.string(),
  model: z.string(),
  calls: z.number().int(),
  usage: UsageSchema,
  cost: CostSchema,
});

const LatencyRowSchema = z.object({
  /** UTC, `YYYY-MM-DD`. */
  day: z.string(),
  /** Calls whose times are known: of turns, since the version that records them. */
  calls: z.number().int(),
  /** Milliseconds of the whole call, with retries. */
  p50Ms: z.number(),
  p95Ms: z.number(),
  /** Milliseconds until the first token; null: no call streamed one. */
  firstTokenP50Ms: z.number().nullable(),
  firstTokenP95Ms: z.number().nullable(),
});

export const usageGroups = ["model", "session", "channel"] as const;

const UsageGroupSchema = z.object({
  /** The model; the title or key of the session; the channel whose message began the work, or `memory` for calls without a session. */
  name: z.string(),
  /** Null: the group is not a session. */
  sessionId: z.string().nullable(),
  calls: z.number().int(),
  usage: UsageSchema,
  cost: CostSchema,
  /** Milliseconds of a call, with retries; null: no call of the group has recorded its time. Omitted by an older store. */
  p50Ms: z.number().nullable().optional(),
  p95Ms: z.number().nullable().optional(),
});

export const usageReport = storeRequest({
  subject: "store.usage.report",
  clients: ["channel-gateway", "agent-core"],
  doc: "Report model calls since the beginning of a day (UTC), by day and model, with the times of calls by day, of one session or of all. Calls that write summaries count like others.",
  input: z.object({
    sinceDay: z.iso.date(),
    sessionId: z.string().optional(),
    /** Also sum by model, session or channel. */
    by: z.enum(usageGroups).optional(),
  }),
  output: z.object({
    rows: z.array(UsageRowSchema),
    /** Times of model calls, one row a day on which there were some. */
    latency: z.array(LatencyRowSchema),
    /** With `by`: the 50 most expensive. */
    groups: z.array(UsageGroupSchema).optional(),
  }),
});
