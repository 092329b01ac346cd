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

export const usageReport = storeRequest({
  subject: "store.usage.report",
  clients: ["channel-gateway", "agent-core"],
  doc: "Report model calls since the beginning of a day (UTC), by day and model, of one session or of all. Calls that write summaries count like others.",
  input: z.object({ sinceDay: z.iso.date(), sessionId: z.string().optional() }),
  output: z.object({ rows: z.array(UsageRowSchema) }),
});
