// Questions to people that a tool call waits for.
import { z } from "zod";
import { request } from "../contract.ts";
import { ToolStepSchema } from "../turns.ts";
import { Fenced, OutgoingSchema } from "./shared.ts";

export const questionAsk = request({
  subject: "store.question.ask",
  server: "store",
  clients: ["agent-core"],
  doc: "Ask people something for a tool step; once a step, however often it is asked for. The next message of the same trust in the session, put after it and before its expiry, is the answer: it settles the step and wakes the turn, and starts no turn of its own.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    question: z.string().min(1),
    /** Answers that are offered; a number answers as well as the words. Others are possible. */
    options: z.array(z.string()),
    expiresInMs: z.number().int().positive(),
    outgoing: z.array(OutgoingSchema),
  }),
  output: z.object({
    step: ToolStepSchema,
    /** ISO 8601, UTC. */
    expiresAt: z.string(),
    /** Position of `question.asked` in the session's log; null when it was asked before. */
    seq: z.number().int().nullable(),
  }),
});
