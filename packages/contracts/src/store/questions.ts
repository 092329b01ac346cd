// Questions to people that a tool call waits for: questions of the agent, whose turn is parked, and questions of a call that a tool-runner
// runs.
import { z } from "zod";
import { hint } from "../contract.ts";
import { GrantToken } from "../grants.ts";
import { ToolStepSchema } from "../turns.ts";
import { Secret } from "./calls.ts";
import { Fenced, OutgoingSchema, storeRequest } from "./shared.ts";

export const questionAsk = storeRequest({
  subject: "store.question.ask",
  clients: ["agent-core"],
  doc: "Ask people a question for a tool step; each step has one question, also when it is requested again. The next message of the same trust in the session, received after the question and before its expiry, is the answer (for a job: the next message of an owner, where the job delivers). The answer settles the step, wakes the turn and starts no turn of its own.",
  input: z.object({
    ...Fenced,
    turnId: z.string(),
    n: z.number().int(),
    question: z.string().min(1),
    /** Suggested answers; people can answer with the text or its number. Others are possible. */
    options: z.array(z.string()),
    expiresInMs: z.number().int().positive(),
    outgoing: z.array(OutgoingSchema),
  }),
  output: z.object({
    step: ToolStepSchema,
    /** ISO 8601, UTC. */
    expiresAt: z.string(),
    /** Position of `question.asked` in the session's log; null when the question already existed. */
    seq: z.number().int().nullable(),
  }),
});

/** Maximum characters of a question from a tool-runner, and of its answer. */
export const maxQuestionCharacters = 8_000;

export const questionRaise = storeRequest({
  subject: "store.question.raise",
  clients: ["tool-runner"],
  doc: "A call on this tool-runner asks the person of its turn a question. It is sent to the turn's reply address and replaces an earlier question of the call. The next message of the same trust in the session is the answer (for a job: of an owner, where the job delivers), as long as the runner confirms with `store.question.look` that it still waits. `nobody`: no person can answer questions of such a turn; nothing was sent.",
  input: z.object({
    ...Fenced,
    grant: GrantToken,
    /** The secret of its claim of the step; ignored for a step that is not claimed. */
    claim: Secret,
    question: z.string().min(1).max(maxQuestionCharacters),
    /** Suggested answers; others are possible. */
    options: z.array(z.string().max(200)).max(50),
    expiresInMs: z.number().int().positive(),
    /** How long the runner counts as waiting without a further request. */
    heldForMs: z.number().int().positive(),
  }),
  output: z.discriminatedUnion("status", [
    z.object({
      status: z.literal("asked"),
      questionId: z.string(),
      /** ISO 8601, UTC. */
      expiresAt: z.string(),
    }),
    z.object({ status: z.literal("nobody"), reason: z.string() }),
  ]),
});

export const questionLook = storeRequest({
  subject: "store.question.look",
  clients: ["tool-runner"],
  doc: "Poll a raised question and report that its runner waits for another `heldForMs`. 0: the runner no longer waits, and an open question has ended; an earlier answer remains.",
  input: z.object({
    grant: GrantToken,
    questionId: z.uuid(),
    heldForMs: z.number().int().nonnegative(),
  }),
  output: z.object({
    /** `over`: withdrawn, expired, its call is settled, or another question replaced it. */
    state: z.enum(["open", "answered", "over"]),
    /** The person's answer, verbatim; null: none yet. */
    answer: z.string().nullable(),
  }),
});

export const questionAnswered = hint({
  subject: "question.answered.{call}",
  publishers: ["store"],
  consumers: ["tool-runner"],
  doc: "A question that this call (`<turn>-<n>`) raised was answered; its runner polls it.",
  payload: z.object({ turnId: z.string(), n: z.number().int() }),
});

const OpenQuestionSchema = z.object({
  sessionId: z.string(),
  /** Null: the session has no title yet. */
  sessionTitle: z.string().nullable(),
  turnId: z.string(),
  callId: z.string(),
  /** At most 1,000 characters. */
  question: z.string(),
  /** Suggested answers; others are possible. */
  options: z.array(z.string()),
  /** ISO 8601, UTC. */
  askedAt: z.string(),
  expiresAt: z.string(),
  /** Whether the next message of an owner in the session is the answer; false: another person answers, or an owner where the job delivers. */
  ownerAnswers: z.boolean(),
});

/** Maximum characters of a question in `store.question.list`. */
export const listedQuestionCharacters = 1_000;

export const questionList = storeRequest({
  subject: "store.question.list",
  clients: ["channel-gateway"],
  doc: "List the questions of all sessions that a tool call waits for, newest first. A question above 1,000 characters is truncated.",
  input: z.object({ limit: z.number().int().min(1).max(100) }),
  output: z.object({ questions: z.array(OpenQuestionSchema) }),
});
