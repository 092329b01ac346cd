// The questions of `parley onboard` on a terminal, as the set-up uses them: Ctrl-C cancels the set-up.

import * as clack from "@clack/prompts";

import { CliError, exitCodes, type Io } from "../io/io.ts";

/** Ctrl-C at a question. Nothing that was answered so far is stored. */
export class SetUpCancelled extends CliError {
  override readonly name = "SetUpCancelled";

  constructor() {
    super("The set-up was cancelled; nothing was changed.", { exitCode: exitCodes.interrupted });
  }
}

export interface Choice<Value> {
  readonly value: Value;
  readonly label: string;
  readonly hint?: string;
}

export interface Prompts {
  intro(text: string): void;
  outro(text: string): void;
  say(text: string): void;
  warn(text: string): void;
  box(title: string, text: string): void;
  choose<Value>(question: string, choices: readonly Choice<Value>[]): Promise<Value>;
  confirm(question: string): Promise<boolean>;
  ask(question: string, suggested?: string): Promise<string>;
  /** The answer is not shown. */
  askSecret(question: string): Promise<string>;
  /** Shows that something takes time; `stop` receives the text that stays. */
  wait(text: string): { stop(text: string): void; readonly cancelled: AbortSignal };
}

export function terminalPrompts({ stdin: input, stdout: output }: Io): Prompts {
  const on = { input, output };
  const required = (value: string | undefined) =>
    value?.trim() ? undefined : "Please enter an answer, or press Ctrl-C to cancel.";
  return {
    intro: (text) => clack.intro(text, on),
    outro: (text) => clack.outro(text, on),
    say: (text) => clack.log.info(text, on),
    warn: (text) => clack.log.warn(text, on),
    box: (title, text) => clack.note(text, title, on),
    async choose<Value>(message: string, choices: readonly Choice<Value>[]) {
      // Choices are selected by their position: clack's types depend on whether a value is primitive.
      const options = choices.map(({ label, hint }, at) => ({
        value: at,
        label,
        ...(hint === undefined ? {} : { hint }),
      }));
      const at = answered(await clack.select<number>({ ...on, message, options }));
      return (choices[at] as Choice<Value>).value;
    },
    confirm: async (message) => answered(await clack.confirm({ ...on, message })),
    async ask(message, suggested) {
      const shown =
        suggested === undefined ? { validate: required } : { placeholder: suggested, defaultValue: suggested };
      return answered(await clack.text({ ...on, message, ...shown })).trim();
    },
    askSecret: async (message) => answered(await clack.password({ ...on, message, validate: required })).trim(),
    wait(text) {
      const cancelling = new AbortController();
      const spinner = clack.spinner({ ...on, onCancel: () => cancelling.abort() });
      spinner.start(text);
      return { stop: (last) => spinner.stop(last), cancelled: cancelling.signal };
    },
  };
}

function answered<Value>(answer: Value | typeof clack.CANCEL_SYMBOL): Value {
  if (clack.isCancel(answer)) throw new SetUpCancelled();
  return answer;
}
