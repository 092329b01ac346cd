// `ask_user`: asks the person of this turn something and waits for the answer, which is what they say next in the conversation.
import { newId, store, whyNobodyAnswers, type Outgoing } from "@parley/contracts";
import { z } from "zod";
import { currentAddresses } from "./address.ts";
import { localTool, type LocalContext, type LocalOutcome } from "./local-tool.ts";

const Option = z.union([z.string(), z.object({ label: z.string(), description: z.string().optional() })]);
const Question = z.object({ question: z.string().min(1), options: z.array(Option).max(4).optional() });

const Input = z.object({
  question: z.string().optional().describe("What you want to know."),
  options: z
    .array(Option)
    .max(4)
    .optional()
    .describe("Two to four answers to choose from; another one is always possible."),
  questions: z.array(Question).max(4).optional().describe("Several questions at once, in place of `question`."),
});

export const askUserTool = localTool({
  name: "ask_user",
  aliases: ["AskUserQuestion"],
  summary: "Ask the person a question and wait for the answer.",
  description:
    "Ask the person you are working for, and wait for the answer. Only for what you cannot find out yourself and must know to go on. The turn rests meanwhile; without an answer in time you are told so.",
  input: Input,
  examples: [
    { question: "Which day suits you?", options: ["Monday", "Tuesday"] },
    { question: "What shall the file be called?" },
  ],
  class: "idempotent",
  readOnly: false,
  risk: "none",
  effects: [],
  run: ask,
  resume: ask,
});

async function ask(input: z.infer<typeof Input>, context: LocalContext): Promise<LocalOutcome> {
  const { turn, step, settings } = context;
  const asked = wording(input);
  if (asked === null) return { status: "failed", content: "Nothing was asked: `question` is missing or empty." };
  if (turn.parent !== null) {
    return {
      status: "failed",
      content: "You are a sub-agent and cannot ask people. Decide yourself, or report what is open.",
    };
  }
  const addresses = currentAddresses(turn);
  const nobody = whyNobodyAnswers(turn.trust, addresses.length > 0);
  if (nobody !== null) {
    return {
      status: "failed",
      content: `Nobody can be asked: ${nobody}. Decide yourself, or say in your answer what is open.`,
    };
  }
  const expiresInMs = settings.agent.question_seconds * 1_000;
  const text = asked.options.length === 0 ? asked.text : `${asked.text}\n${numbered(asked.options)}`;
  const outgoing: Outgoing[] = addresses.map((address) => ({ address, text, expiresInMs }));
  const {
    step: now,
    expiresAt,
    seq,
  } = await context.bus.request(
    store.questionAsk,
    {
      opId: newId(),
      epoch: context.epoch,
      turnId: turn.turnId,
      n: step.n,
      question: asked.text,
      options: asked.options,
      expiresInMs,
      outgoing,
    },
    { timeoutMs: context.storeTimeoutMs },
  );
  if (now.result !== null) return { status: "settled", result: now.result };
  if (seq !== null) {
    context.say({
      type: "question.asked",
      seq,
      turnId: turn.turnId,
      callId: step.callId,
      question: asked.text,
      options: asked.options,
      expiresAt,
    });
  }
  if (Date.parse(expiresAt) <= Date.now()) {
    return { status: "failed", content: "Nobody has answered in time. Go on as well as you can without the answer." };
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
