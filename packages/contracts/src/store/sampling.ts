// What MCP servers have used of a model, beside the steps of a turn.
import { z } from "zod";
import { request } from "../contract.ts";
import { UsageSchema } from "../messages.ts";
import { Fenced } from "./shared.ts";

export const stepSampled = request({
  subject: "store.step.sampled",
  server: "store",
  clients: ["agent-core"],
  doc: "A model has answered an MCP server during this tool step: its usage counts to the turn, the session, the day. CONFLICT when the turn has ended or is another leader's.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    /** Step number of the tool call. */
    n: z.number().int(),
    model: z.string(),
    stopReason: z.string(),
    usage: UsageSchema,
    /** Millionths of a US dollar; null: the price is not known. */
    costMicros: z.number().int().nonnegative().nullable(),
  }),
  output: z.object({}),
});
