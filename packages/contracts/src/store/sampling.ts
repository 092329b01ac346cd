// Model usage of MCP servers through sampling.
import { z } from "zod";
import { UsageSchema } from "../messages.ts";
import { Fenced, storeRequest } from "./shared.ts";

export const stepSampled = storeRequest({
  subject: "store.step.sampled",
  clients: ["agent-core"],
  doc: "Record the usage of a sampling answer during this tool step, for the turn, the session and the day. CONFLICT when the turn has ended or belongs to another leader.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** Step number of the tool call. */
    n: z.number().int(),
    model: z.string(),
    stopReason: z.string(),
    usage: UsageSchema,
    /** Millionths of a US dollar; null: unknown price. */
    costMicros: z.number().int().nonnegative().nullable(),
  }),
  output: z.object({}),
});
