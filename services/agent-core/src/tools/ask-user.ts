// `ask_user`: asks the person of this turn a question and waits for the answer, which is their next message in the conversation.
import { store, noAnswererReason, type Outgoing } from "@parley/contracts";
import { z } from "zod";
import { turnAddresses } from "./reply-address.ts";
import { localTool, type LocalContext, type LocalOutcome } from "./local-tool.ts";

const Option = z.union([z.string(), z.object({ label: z.string(), description: z.string().optional() })]);
const Question = z.object({ question: z.string().min(1), options: z.array(Option).max(4).optional() });

const Input = z.object({
  question: z.string().optional().describe("The question.").meta({ modelSchema: "name_only" }),
  options: z.array(Option).max(4).optional().describe("Two to four answers; the person may give another one."),
  questions: z
    .array(Question)
    .max(4)
    .optional()
    .describe("Several questions at once, instead of `question`.")
    .meta({ modelSchema: "hidden" }),
});

export const askUserTool = localTool({
  name: "ask_user",
  aliases: ["AskUserQuestion"],
  summary: "Ask the person a question and wait for the answer.",
  description:
    "Ask the person a question and wait for the answer. Use it only for information that you need to continue and cannot find yourself.",
  input: Input,
  examples: [
    { question: "Which day suits you?", options: ["Monday", "Tuesday"] },
    { question: "What should the file be called?" },
  ],
  class: "idempotent",
  readOnly: false,
  risk: "none",
  effects: [],
  run: ask,
  resume: ask,
});

/** Options as buttons, if all are short enough. */
function actionsOf(options: readonly string[]): { actions?: store.Action[] } {
  const actions = options.map((option) => ({ label: option, input: option }));
  return actions.length > 0 && actions.every((action) => store.ActionSchema.safeParse(action).success)
    ? { actions }
    : {};
}

async function ask(input: z.infer<typeof Input>, context: LocalContext): Promise<LocalOutcome> {
  const { turn, step, settings } = context;
  const question = wording(input);
  if (question === null) return { status: "failed", content: "Not asked: `question` is missing or empty." };
  if (turn.parent !== null) {
    return {
      status: "failed",
      content: "Not asked: sub-agents cannot ask people. Decide yourself, or list the open points in your report.",
    };
  }
  const addresses = turnAddresses(turn);
  const nobody = noAnswererReason(turn.trust, addresses.length > 0);
  if (nobody !== null) {
    return {
      status: "failed",
      content: `No person can answer: ${nobody}. Decide yourself, or list the open points in your answer.`,
    };
  }
  const expiresInMs = settings.agent.question_seconds * 1_000;
  const text = question.options.length === 0 ? question.text : `${question.text}\n${numbered(question.options)}`;
  const outgoing: Outgoing[] = addresses.map((address) => ({
    address,
    text,
    expiresInMs,
    ...actionsOf(question.options),
  }));
  const {
    step: now,
    expiresAt,
    seq,
  } = await context.leaderStore.request(store.questionAsk, {
    turnId: turn.turnId,
    n: step.n,
    question: question.text,
    options: question.options,
    expiresInMs,
    outgoing,
  });
  if (now.result !== null) return { status: "settled", result: now.result };
  if (seq !== null) {
    context.publish({
      type: "question.asked",
      seq,
      turnId: turn.turnId,
      callId: step.callId,
      question: question.text,
      options: question.options,
      expiresAt,
    });
  }
  if (Date.parse(expiresAt) <= Date.now()) {
    return {
      status: "failed",
      content: "The question timed out without an answer. Continue as well as you can without it.",
    };
  }
  return { status: "waiting", until: expiresAt };
}

function wording(input: z.infer<typeof Input>): { text: string; options: string[] } | null {
  const labels = (options: z.infer<typeof Option>[] = []) =>
    options.map((option) => {
      if (typeof option === "string") return option;
      return option.description === undefined ? option.label : `${option.label}: ${option.description}`;
    });
  if (input.question !== undefined && input.question.trim() !== "") {
    return { text: input.question.trim(), options: labels(input.options) };
  }
  const questions = input.questions ?? [];
  const [only] = questions;
  if (only === undefined) return null;
  if (questions.length === 1) return { text: only.question, options: labels(only.options) };
  const texts = questions.map(({ question, options }, index) => {
    const choices = labels(options);
    return `${index + 1}. ${question}${choices.length === 0 ? "" : ` (${choices.join(" / ")})`}`;
  });
  return { text: texts.join("\n"), options: [] };
}

function numbered(options: readonly string[]): string {
  return options.map((option, index) => `${index + 1}. ${option}`).join("\n");
}
