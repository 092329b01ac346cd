// A person's yes or no to one exact tool call.
import { z } from "zod";
import { request } from "../contract.ts";
import { approvalStates } from "../turns.ts";
import { Fenced, OutgoingSchema } from "./shared.ts";

const ApprovalSchema = z.object({
  /** Short, to be typed in a chat. */
  id: z.string(),
  sessionId: z.string(),
  turnId: z.string(),
  n: z.number().int(),
  tool: z.string(),
  /** What a person judges by: the tool and all arguments of the call. */
  summary: z.string(),
  /** Characters that a list cuts off the end of `summary`; left out: none. */
  hiddenCharacters: z.number().int().positive().optional(),
  /** Why it is asked. */
  reason: z.string(),
  state: z.enum(approvalStates),
  /** The yes also made a rule for the session. */
  always: z.boolean(),
  /** ISO 8601, UTC. */
  requestedAt: z.string(),
  expiresAt: z.string(),
  decidedBy: z.string().nullable(),
});
export type Approval = z.infer<typeof ApprovalSchema>;

export const approvalRequest = request({
  subject: "store.approval.request",
  server: "store",
  clients: ["agent-core"],
  doc: "Ask a person about one exact call; one question for a call and a hash, however often it is asked for. What is sent to people goes out in the same commit, if the question is new. CONFLICT when the id is taken.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    id: z.string().regex(/^[A-Z0-9]{4,12}$/),
    tool: z.string(),
    callHash: z.string().length(64),
    summary: z.string(),
    reason: z.string(),
    /** The arguments of the call as it would run: JSON text. Left out by an older agent-core. */
    input: z.string().optional(),
    /** Permission rules that an approval grants until the turn ends. */
    grants: z.array(z.string()).optional(),
    expiresInMs: z.number().int().positive(),
    outgoing: z.array(OutgoingSchema),
    /** Sent to the conversation that an owner has used last; left out: nothing is. */
    toOwner: OutgoingSchema.omit({ address: true }).optional(),
    /** The question is stored only if `toOwner` can be sent: nobody else can answer it. */
    ownerOnly: z.boolean().optional(),
  }),
  output: z.object({
    /** Null: `ownerOnly` was set and no owner has an address; nothing was stored. */
    approval: ApprovalSchema.nullable(),
    /** Position of `approval.requested` in the session's log; null when the question was there already. */
    seq: z.number().int().nullable(),
  }),
});

export const approvalDecide = request({
  subject: "store.approval.decide",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A person's answer. The first one counts; after the expiry none does. Wakes the turn.",
  input: z.object({
    id: z.string(),
    allow: z.boolean(),
    always: z.boolean(),
    /** Who answers, for the log. */
    by: z.string(),
    /** With `allow`, JSON text of an object: the call runs with these arguments, if the rules allow them. Not with `always`. */
    updatedInput: z.string().optional(),
    /** Without `allow`: the reason, for the model. */
    message: z.string().max(4_000).optional(),
    /** Without `allow`: the turn ends as interrupted. */
    interrupt: z.boolean().optional(),
  }),
  output: z.object({
    outcome: z.enum(["decided", "already", "expired", "not_found"]),
    approval: ApprovalSchema.nullable(),
  }),
});

export const approvalGet = request({
  subject: "store.approval.get",
  server: "store",
  clients: ["channel-gateway"],
  doc: "One question to people with its whole text and the full arguments of the call; null when no question has this id.",
  input: z.object({ id: z.string() }),
  output: z.object({
    approval: ApprovalSchema.nullable(),
    /** JSON text; null where the question was stored by an older version. */
    input: z.string().nullable(),
  }),
});

/** Characters of a summary in `store.approval.list`. */
export const listedSummaryCharacters = 1_000;

export const approvalList = request({
  subject: "store.approval.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Questions to people, newest first. A summary above 1,000 characters is cut at its end; `store.approval.get` has all of it.",
  input: z.object({ sessionId: z.string().optional(), pending: z.boolean(), limit: z.number().int().min(1).max(100) }),
  output: z.object({ approvals: z.array(ApprovalSchema) }),
});
