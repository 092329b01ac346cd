// Calls of tools that the program which drives a session runs itself. A call is held by one process of the program, which renews its
// hold while it works; a call that nobody holds has ended.
import { z } from "zod";
import { ToolStepSchema } from "../turns.ts";
import { Fenced, storeRequest } from "./shared.ts";

export const programCallOpen = storeRequest({
  subject: "store.program.open",
  clients: ["agent-core"],
  doc: "Offer a tool step to the program that drives the session; a step is offered once, also when it is requested again. `isOver`: the program has not taken the call in time, or no longer holds it.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    /** JSON text of the arguments of the call as it runs. */
    input: z.string(),
    /** How long the program has to take the call. */
    holdMs: z.number().int().positive(),
  }),
  output: z.object({
    step: ToolStepSchema,
    /** ISO 8601, UTC. */
    heldUntil: z.string(),
    taken: z.boolean(),
    isOver: z.boolean(),
  }),
});

const call = { turnId: z.uuid(), callId: z.string().min(1).max(200), by: z.uuid() };

export const programCallTake = storeRequest({
  subject: "store.program.take",
  clients: ["channel-gateway"],
  doc: "Take an offered call for one process of the program, or renew its hold. The first process that takes a call has it.",
  input: z.object({
    ...call,
    /** How long the process holds the call from now on. */
    holdMs: z.number().int().min(1_000).max(120_000),
  }),
  output: z.object({
    /** JSON text; null: the call is not offered, is settled, or another process has it. */
    input: z.string().nullable(),
  }),
});

export const programCallAnswer = storeRequest({
  subject: "store.program.answer",
  clients: ["channel-gateway"],
  doc: "Settle a call with the result of the process that took it, and wake the turn. `over`: the call has another result, or another process has taken it.",
  input: z.object({ ...call, content: z.string().max(1_000_000), isError: z.boolean() }),
  output: z.object({ outcome: z.enum(["settled", "over"]) }),
});
