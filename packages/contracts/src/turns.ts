// Turns and steps: the durable state machine of one run of the loop.
//
//   turn   running ─→ done | failed | cancelled | dead
//   step   intended ─→ running ─→ done | failed | cancelled | unknown        (tools of class `once` and `idempotent`)
//          intended ─→ done | failed | cancelled                              (tools of class `pure`, never claimed)
import { z } from "zod";
import { AnswerRequirementsSchema } from "./answer.ts";
import { MessageSchema, ToolResultPart, UsageSchema } from "./messages.ts";
import { ReplyAddressSchema } from "./inbound.ts";
import { approvalAnswerers, TrustLevelSchema } from "./principals.ts";
import { ProgramAgentsSchema, StartedAgentSchema } from "./program-agents.ts";
import { ProgramToolsSchema } from "./program-tools.ts";
import { efforts } from "./settings/agent.ts";
import { permissionModes } from "./settings/permissions.ts";
import { queueModes } from "./settings/queue.ts";
import { TodoSchema } from "./todos.ts";
import { ViewRecordSchema } from "./view-record.ts";

export const turnStates = ["running", "done", "failed", "cancelled", "dead"] as const;
export type TurnState = (typeof turnStates)[number];

/** Why a turn ended. `max_turns`: a limit on model calls, tool calls, time or rounds; `max_budget`: a limit on tokens or money. */
export const exitReasons = [
  "end_turn",
  "max_turns",
  "max_budget",
  "max_tokens",
  "stop_sequence",
  "refusal",
  "interrupted",
  "aborted",
  "error",
] as const;
export type ExitReason = (typeof exitReasons)[number];

const stepStates = ["intended", "running", "done", "failed", "cancelled", "unknown"] as const;
export type StepState = (typeof stepStates)[number];

/** What may be done with a tool call after a crash. `pure`: rerun. `idempotent`: rerun with the same key. `once`: never rerun. */
export const toolClasses = ["pure", "idempotent", "once"] as const;
export type ToolClass = (typeof toolClasses)[number];

export const approvalStates = ["pending", "allowed", "denied", "expired"] as const;

/**
 * The outcome of a permission check that requires a person's approval, or of one whose hooks changed the arguments. The call resumes from
 * it: no hook runs again for these arguments.
 */
export const AuthorizationSchema = z.object({
  /** JSON text: the arguments after the hooks, as the person was shown them or as the call runs with. */
  input: z.string(),
  /** Notes of the hooks for the model. */
  notes: z.array(z.string()),
  /** Hash of the rules and the mode that were evaluated. After a change they are evaluated again, and a denial wins. */
  rules: z.string(),
  /** A hook requires approval where no rule allows the call, also if the mode does. */
  askedByHook: z.boolean(),
  /** The rules that "always" adds to the session; null: none. */
  always: z.object({ list: z.enum(["allow", "allowTainted"]), rules: z.array(z.string()) }).nullable(),
});
export type StoredAuthorization = z.infer<typeof AuthorizationSchema>;

const ApprovalRefSchema = z.object({
  id: z.string(),
  /** `expired` as soon as `expiresAt` has passed. */
  state: z.enum(approvalStates),
  /** SHA-256 of the exact call. */
  callHash: z.string(),
  /** ISO 8601, UTC. */
  expiresAt: z.string(),
  /** The approval also covers similar calls in this session. */
  always: z.boolean(),
  /** Who decided, for the model and the log. */
  decidedBy: z.string().nullable(),
  /** JSON text of an object: the arguments the call is allowed with. Omitted: its own. */
  updatedInput: z.string().optional(),
  /** The reason of a denial, for the model. */
  message: z.string().optional(),
  /** The denial also ends the turn. */
  interrupt: z.boolean().optional(),
  /** Omitted: an older agent-core requested the approval. */
  authorization: AuthorizationSchema.optional(),
});

/** What a call and the hooks on it leave for the rest of the turn, in addition to the result. */
export const HookOutcomeSchema = z.object({
  /** Notes of the hooks for the model, after the result. */
  notes: z.array(z.string()),
  /** The call ends the turn without an answer. Omitted: it does not. */
  sleeps: z.boolean().optional(),
  /** The hooks end the turn with this text. Omitted: they do not. */
  stop: z.string().optional(),
});
export type HookOutcome = z.infer<typeof HookOutcomeSchema>;

export const ToolStepSchema = z.object({
  turnId: z.string(),
  /** Position among the turn's steps. */
  n: z.number().int(),
  callId: z.string(),
  tool: z.string(),
  class: z.enum(toolClasses),
  state: z.enum(stepStates),
  /** JSON text, as the model wrote it. */
  input: z.string(),
  /** The call may run without a further question, with arguments that hooks changed. Omitted: no hook changed them, or it waits for approval. */
  authorization: AuthorizationSchema.optional(),
  /** Not null in every final state. */
  result: ToolResultPart.nullable(),
  /** The tool-runner replica that claimed it. */
  runner: z.string().nullable(),
  startedAt: z.string().nullable(),
  /** The newest approval request for this call; omitted: none. */
  approval: ApprovalRefSchema.optional(),
  /** The hooks on the result have run, and `result` is what they returned; omitted: they have not run, or nothing is to be kept. */
  hookOutcome: HookOutcomeSchema.optional(),
});
export type ToolStep = z.infer<typeof ToolStepSchema>;

/** `wait`: the parent's call gets the result. `background`: the result comes to the parent's session as input. */
export const taskModes = ["wait", "background"] as const;
export type TaskMode = (typeof taskModes)[number];

/** Money, in millionths of a US dollar. Calls without a known price are counted, never treated as free. */
export const CostSchema = z.object({
  micros: z.number().int().nonnegative(),
  unpricedCalls: z.number().int().nonnegative(),
});
export type Cost = z.infer<typeof CostSchema>;
export const noCost: Cost = { micros: 0, unpricedCalls: 0 };

/** Names of models. */
export const FallbackModelsSchema = z.array(z.string().min(1).max(200)).min(1).max(5);

/** Overrides for one session; the settings apply to absent fields. */
export const SessionOverridesSchema = z.object({
  model: z.string().optional(),
  /** Models that replace it in this order when it fails; omitted: those of the settings, unless `model` is set. */
  fallbackModels: FallbackModelsSchema.optional(),
  effort: z.enum(efforts).optional(),
  permissionMode: z.enum(permissionModes).optional(),
  queueMode: z.enum(queueModes).optional(),
  /** Answers are also sent as speech. */
  voiceReplies: z.boolean().optional(),
  /** Rules that "always" approvals or people added. They do not apply to effects that carry taint in a tainted turn. */
  allow: z.array(z.string()).optional(),
  /** Like `allow`, from approvals given in a tainted turn: they also apply in tainted turns and cover exactly what was approved. */
  allowTainted: z.array(z.string()).optional(),
  deny: z.array(z.string()).optional(),
  ask: z.array(z.string()).optional(),
  /** Limits of each turn, in addition to those of the settings: model calls, and cost in millionths of a US dollar. */
  maxModelCalls: z.number().int().positive().optional(),
  maxCostMicros: z.number().int().positive().optional(),
  /** The name in `[workspace.folders]` of the folder that the session works in; omitted: the workspace. Fixed with the first message. */
  workspace: z.string().optional(),
  /** Why SessionStart hooks must run before the next turn, in addition to its first one. Removed when they have run; summaries leave it out. */
  start: z.enum(["clear", "resume", "fork"]).optional(),
  /** Tools of the program that drives the session. Summaries of sessions leave them out. */
  programTools: ProgramToolsSchema.optional(),
  /** Sub-agents that the program defines for this session. Summaries leave them out, like the next field. */
  programAgents: ProgramAgentsSchema.optional(),
  /** In the session of such a sub-agent: its definition. */
  programAgent: StartedAgentSchema.optional(),
});
export type SessionOverrides = z.infer<typeof SessionOverridesSchema>;

/** What the leader needs to know about a session in addition to its log. */
export const SessionStateSchema = z.object({
  /** The part of the log that prompts contain; null: all of it. */
  view: ViewRecordSchema.nullable(),
  overrides: SessionOverridesSchema,
  profile: z.string().nullable(),
  parentId: z.string().nullable(),
  depth: z.number().int(),
  /** Hash of the session's stored system prompt and tools; null: not fixed yet. */
  prefixHash: z.string().nullable(),
});
export type SessionState = z.infer<typeof SessionStateSchema>;

/** What agent-core needs to run or resume a turn. */
export const ClaimedTurnSchema = z.object({
  turnId: z.string(),
  sessionId: z.string(),
  sessionKey: z.string(),
  replyTo: ReplyAddressSchema.nullable(),
  /** Further addresses for the answer: the conversations of messages that joined the turn. */
  alsoTo: z.array(ReplyAddressSchema),
  inboxIds: z.array(z.string()),
  /** Trust of the turn's input; only input of equal trust joins it. */
  trust: TrustLevelSchema,
  /** Its caller waits for the answer to one message: no input joins. Omitted: false. */
  exclusive: z.boolean().optional(),
  /** What that caller requires of the answer. Omitted: nothing. */
  answer: AnswerRequirementsSchema.optional(),
  /** The root turn of the agent tree; for a user's turn, the turn itself. */
  root: z.object({
    turnId: z.string(),
    trust: TrustLevelSchema,
    replyTo: ReplyAddressSchema.nullable(),
    /** The name of the webhook that sent all input of that turn; omitted: it came from elsewhere, or from several. */
    webhook: z.string().optional(),
    /** Key of that turn's session; omitted by an older store. */
    sessionKey: z.string().optional(),
    /** Who can answer its approval questions. Omitted: `sender`. */
    approvals: z.enum(approvalAnswerers).optional(),
  }),
  /** The call in another session's turn that started this turn; null: none. */
  parent: z.object({ turnId: z.string(), n: z.number().int(), mode: z.enum(taskModes) }).nullable(),
  usage: UsageSchema,
  cost: CostSchema,
  /** Cost of the whole tree below `root`, including this turn. */
  treeCost: CostSchema,
  /** What the session had used before this turn, with its sub-agents; omitted: not requested. */
  earlier: z
    .object({ costMicros: z.number().int().nonnegative(), modelCalls: z.number().int().nonnegative() })
    .optional(),
  /** W3C trace context of the request that began it; null without tracing. */
  trace: z.string().nullable(),
  /** Permission rules from approvals in this turn, valid until its end; omitted: none. */
  granted: z.array(z.string()).optional(),
  /** How often this turn has been claimed, including this claim. */
  attempt: z.number().int(),
  /** The next free step number. */
  nextStep: z.number().int(),
  /** Model calls already committed. */
  modelSteps: z.number().int(),
  /** Tool steps whose results are not yet in a message, in call order. */
  openSteps: z.array(ToolStepSchema),
  cancelRequested: z.boolean(),
  startedAt: z.string(),
  /** Milliseconds since `startedAt` in which the turn waited for a person. */
  waitedMs: z.number().int().nonnegative(),
});
export type ClaimedTurn = z.infer<typeof ClaimedTurnSchema>;

export const TurnSummarySchema = z.object({
  turnId: z.string(),
  sessionId: z.string(),
  state: z.enum(turnStates),
  exitReason: z.enum(exitReasons).nullable(),
  /** The answer, once the turn has ended. */
  text: z.string().nullable(),
  usage: UsageSchema,
  cost: CostSchema,
  modelSteps: z.number().int(),
  attempts: z.number().int(),
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
});
export type TurnSummary = z.infer<typeof TurnSummarySchema>;

export const SessionSummarySchema = z.object({
  sessionId: z.string(),
  key: z.string(),
  title: z.string().nullable(),
  /** The title comes from untrusted content or was set in a tainted turn. Omitted: it does not. */
  titleTainted: z.boolean().optional(),
  status: z.enum(["active", "archived"]),
  /** The session whose agent started this one. */
  parentId: z.string().nullable(),
  profile: z.string().nullable(),
  overrides: SessionOverridesSchema,
  cost: CostSchema,
  /** Including the cost of its sub-agents at every depth. */
  treeCost: CostSchema,
  /** The last sequence number of this session's log. */
  seq: z.number().int(),
  messageCount: z.number().int(),
  usage: UsageSchema,
  queued: z.number().int(),
  runningTurnId: z.string().nullable(),
  /** The running turn waits for somebody: an approval, a sub-agent. */
  parked: z.boolean(),
  /** The agent's to-do list; omitted: empty. */
  todos: z.array(TodoSchema).optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type SessionSummary = z.infer<typeof SessionSummarySchema>;

export const HistorySchema = z.object({
  messages: z.array(MessageSchema),
  /** More messages exist in the direction of reading. */
  more: z.boolean(),
});
