// Approval or denial of one exact tool call by a person.
import { z } from "zod";
import { ReplyAddressSchema } from "../inbound.ts";
import { approvalStates, AuthorizationSchema } from "../turns.ts";
import { Fenced, optionalOpId, OutgoingSchema, storeRequest } from "./shared.ts";

const ApprovalSchema = z.object({
  /** Short, so that people can type it in a chat. */
  id: z.string(),
  sessionId: z.string(),
  turnId: z.string(),
  n: z.number().int(),
  tool: z.string(),
  /** Description for the person: the tool and all arguments of the call. */
  summary: z.string(),
  /** Characters that a list truncated from the end of `summary`; omitted: none. */
  hiddenCharacters: z.number().int().positive().optional(),
  /** Why approval is required. */
  reason: z.string(),
  state: z.enum(approvalStates),
  /** False: an approval covers this call only, also with "always". Omitted by older versions. */
  mayAlways: z.boolean().optional(),
  /** The approval also added a rule to the session. */
  always: z.boolean(),
  /** ISO 8601, UTC. */
  requestedAt: z.string(),
  expiresAt: z.string(),
  decidedBy: z.string().nullable(),
});
export type Approval = z.infer<typeof ApprovalSchema>;

export const approvalRequest = storeRequest({
  subject: "store.approval.request",
  clients: ["agent-core"],
  doc: "Request a person's approval of one exact call. A call and hash have one question, also when it is requested again. If the question is new, its messages to people are committed with it. CONFLICT when the id is taken.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    id: z.string().regex(/^[A-Z0-9]{4,12}$/),
    tool: z.string(),
    callHash: z.string().length(64),
    summary: z.string(),
    reason: z.string(),
    /** The arguments of the call as it would run: JSON text. Omitted by an older agent-core. */
    input: z.string().optional(),
    /** Permission rules that an approval grants until the turn ends. */
    grants: z.array(z.string()).optional(),
    /** Stored with the question, for the leader that resumes the call. Omitted by an older agent-core. */
    authorization: AuthorizationSchema.optional(),
    expiresInMs: z.number().int().positive(),
    outgoing: z.array(OutgoingSchema),
    /** Sent to the conversation that an owner used last; omitted: nothing is sent. */
    toOwner: OutgoingSchema.omit({ address: true }).optional(),
    /** The question is stored only if `toOwner` can be sent: only an owner can answer it. */
    ownerOnly: z.boolean().optional(),
  }),
  output: z.object({
    /** Null: `ownerOnly` was set and no owner has an address; nothing was stored. */
    approval: ApprovalSchema.nullable(),
    /** Position of `approval.requested` in the session's log; null when the question already existed. */
    seq: z.number().int().nullable(),
  }),
});

export const stepAuthorize = storeRequest({
  subject: "store.step.authorize",
  clients: ["agent-core"],
  doc: "Record with which arguments an open tool step runs after hooks changed them, before it is started: a new leader runs it with the same ones. CONFLICT when the step is settled.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    authorization: AuthorizationSchema,
  }),
  output: z.object({}),
});

export const approvalDecide = storeRequest({
  subject: "store.approval.decide",
  clients: ["channel-gateway"],
  doc: "Record a person's decision and wake the turn. The first decision counts; after the expiry none does.",
  input: z.object({
    opId: optionalOpId,
    id: z.string(),
    allow: z.boolean(),
    /** Also for similar calls. Without effect when the approval can apply to this one call only; `approval.always` tells. */
    always: z.boolean(),
    /** Who decides, for the log. */
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

export const approvalGet = storeRequest({
  subject: "store.approval.get",
  clients: ["channel-gateway"],
  doc: "Get one approval question with its full text and the full arguments of the call; null when no question has this id.",
  input: z.object({ id: z.string() }),
  output: z.object({
    approval: ApprovalSchema.nullable(),
    /** JSON text; null where the question was stored by an older version. */
    input: z.string().nullable(),
  }),
});

/** Maximum characters of a summary in `store.approval.list`. */
export const listedSummaryCharacters = 1_000;

export const approvalList = storeRequest({
  subject: "store.approval.list",
  clients: ["channel-gateway"],
  doc: "List approval questions, newest first. A summary above 1,000 characters is truncated; `store.approval.get` returns all of it.",
  input: z.object({
    sessionId: z.string().optional(),
    /** Only questions that were sent to this conversation. */
    askedIn: ReplyAddressSchema.pick({ channel: true, account: true, conversation: true }).optional(),
    pending: z.boolean(),
    limit: z.number().int().min(1).max(100),
  }),
  output: z.object({
    approvals: z.array(
      ApprovalSchema.extend({
        /** Null: the session has no title yet. Omitted by an older store. */
        sessionTitle: z.string().nullable().optional(),
      }),
    ),
  }),
});
