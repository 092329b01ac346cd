// Questions to people that a tool call waits for: of the agent, whose turn is put aside meanwhile, and of a call that a tool-runner holds.
import { z } from "zod";
import { hint, request } from "../contract.ts";
import { GrantToken } from "../grants.ts";
import { ToolStepSchema } from "../turns.ts";
import { Secret } from "./calls.ts";
import { Fenced, OutgoingSchema } from "./shared.ts";

export const questionAsk = request({
  subject: "store.question.ask",
  server: "store",
  clients: ["agent-core"],
  doc: "Ask people something for a tool step; once a step, however often it is asked for. The next message of the same trust in the session (of a job: of an owner, where the job delivers), put after it and before its expiry, is the answer: it settles the step and wakes the turn, and starts no turn of its own.",
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

/** Most characters of a question that a tool-runner passes on, and of its answer. */
export const maxQuestionCharacters = 8_000;

export const questionRaise = request({
  subject: "store.question.raise",
  server: "store",
  clients: ["tool-runner"],
  doc: "A call that this tool-runner holds asks the person of its turn something. It goes out where the turn answers to, and takes the place of what the call asked before. The next message of the same trust in the session (of a job: of an owner, where the job delivers) is the answer, as long as the runner shows with `store.question.look` that it still waits. `nobody`: nobody can be asked in such a turn, nothing was said.",
  input: z.object({
    ...Fenced,
    grant: GrantToken,
    /** The secret of its claim of the step; it does not matter for a step that nobody has claimed. */
    claim: Secret,
    question: z.string().min(1).max(maxQuestionCharacters),
    /** Answers that are offered; others are possible. */
    options: z.array(z.string().max(200)).max(50),
    expiresInMs: z.number().int().positive(),
    /** How long the runner is believed to wait without a word from it. */
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

export const questionLook = request({
  subject: "store.question.look",
  server: "store",
  clients: ["tool-runner"],
  doc: "How a question that was raised stands, and that its runner waits for `heldForMs` more; 0: it waits no longer, and an open question is over. An answer that came first stands.",
  input: z.object({
    grant: GrantToken,
    questionId: z.uuid(),
    heldForMs: z.number().int().nonnegative(),
  }),
  output: z.object({
    /** `over`: withdrawn, expired, its call is settled, or another question has taken its place. */
    state: z.enum(["open", "answered", "over"]),
    /** What the person said, word for word; null: nothing yet. */
    answer: z.string().nullable(),
  }),
});

export const questionAnswered = hint({
  subject: "question.answered.{call}",
  publishers: ["store"],
  consumers: ["tool-runner"],
  doc: "A question that this call (`<turn>-<n>`) has raised is answered; its runner looks.",
  payload: z.object({ turnId: z.string(), n: z.number().int() }),
});
