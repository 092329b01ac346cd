// The message stream that a program reads. Its hooks run before a message is sent, and before a turn's result is printed; a Stop hook
// can continue the run with another message.

import { type AnswerSchema, errorMessage, maxAnswerRetries, readAnswer } from "@parley/contracts";
import type { SdkMessage } from "@parley/projections";

import type { ProgramHooks } from "./hooks.ts";
import type { RunResult } from "./stream.ts";
import { retryText } from "./structured-output.ts";

export interface ProgramStreamDeps {
  readonly hooks: ProgramHooks;
  readonly hookContext: () => Readonly<Record<string, unknown>>;
  readonly print: (message: SdkMessage) => void;
  readonly note: (text: string) => void;
  /** Continues the run with another message. */
  readonly again: (text: string) => void;
  /** The run has failed, although its last turn has not. */
  readonly fail: () => void;
  /** How the session of the run begins. */
  readonly source: "startup" | "resume" | "fork";
}

interface BeforePrompt {
  readonly refusal: string | null;
  readonly contexts: readonly string[];
  readonly sessionContexts: readonly string[];
}

/** A command that compacts the conversation, with what its summary must keep. */
const compactCommand = /^\/compact(?:\s+(.*))?$/s;

export class ProgramStream {
  readonly #deps: ProgramStreamDeps;
  /** The messages in order: a result waits for the hooks on the end of its turn. */
  #tail: Promise<void> = Promise.resolve();
  #hasStarted = false;
  /** The turn was started by a Stop hook. */
  #continued = false;
  /** What answers must match; null: they are text. */
  #schema: AnswerSchema | null = null;
  /** Answers of the current message that did not match. */
  #mismatches = 0;

  constructor(deps: ProgramStreamDeps) {
    this.#deps = deps;
  }

  /** From now on, answers must match. */
  requireSchema(schema: AnswerSchema): void {
    this.#schema = schema;
  }

  message(message: SdkMessage): void {
    const isHookReport = message.type === "system" && message.subtype.startsWith("hook_");
    if (isHookReport) this.#deps.print(message);
    else this.#inOrder(message, async () => (message.type === "result" ? this.#ended(message) : message));
  }

  /** Prints the result of a message that started no turn: it is no answer of the agent. */
  resultWithoutTurn(result: RunResult): void {
    this.#inOrder(result, async () => {
      if (result.is_error) this.#forgetMessage();
      return result;
    });
  }

  /** Prints what `shown` returns, if anything, after all earlier messages; at once if no message can wait for hooks. */
  #inOrder(message: SdkMessage, shown: () => Promise<SdkMessage | null>): void {
    const { hooks, print } = this.#deps;
    const mayWait = this.#schema !== null || hooks.has("Stop") || hooks.has("StopFailure");
    if (mayWait) this.#tail = this.#printAfter(this.#tail, shown);
    else print(message);
  }

  async #printAfter(previous: Promise<void>, shown: () => Promise<SdkMessage | null>): Promise<void> {
    await previous;
    const message = await shown();
    if (message !== null) this.#deps.print(message);
  }

  /** The current message has failed: what follows is not a continuation of it. */
  #forgetMessage(): void {
    this.#mismatches = 0;
    this.#continued = false;
  }

  /** The result to print; null: the run continues with another message. */
  async #ended(result: RunResult): Promise<RunResult | null> {
    const checked = this.#checked(result);
    return checked === null || (await this.#continues(checked)) ? null : checked;
  }

  /** The result with the value of its answer; null: the answer is requested again. */
  #checked(result: RunResult): RunResult | null {
    const schema = this.#schema;
    if (schema === null || result.is_error) return result;
    const read = readAnswer(schema, result.result);
    if ("value" in read) {
      this.#mismatches = 0;
      return { ...result, structured_output: read.value };
    }
    this.#mismatches += 1;
    if (this.#mismatches <= maxAnswerRetries) {
      this.#deps.again(retryText(schema, read.problem));
      return null;
    }
    this.#deps.fail();
    const errors = [`The answer does not match the schema: ${read.problem}`];
    return { ...result, subtype: "error_max_structured_output_retries", is_error: true, errors };
  }

  /** Resolves when every message is printed. */
  flushed(): Promise<void> {
    return this.#tail;
  }

  /**
   * Calls the hooks on a message of the program. `refusal`: why it is not sent. `sessionContexts`: what SessionStart hooks add to the first
   * turn of the run.
   */
  async beforePrompt(prompt: string): Promise<BeforePrompt> {
    const { hooks, hookContext, source } = this.#deps;
    const sessionContexts: string[] = [];
    try {
      if (!this.#hasStarted) {
        this.#hasStarted = true;
        sessionContexts.push(...(await hooks.call("SessionStart", { ...hookContext(), source }, source)).contexts);
      }
      const verdict = await hooks.call("UserPromptSubmit", { ...hookContext(), prompt, source: "sdk" });
      const denial =
        verdict.decision === "deny" ? (verdict.reason ?? "A hook of the program refused the message.") : null;
      const refusal = verdict.stop ?? denial;
      const [command, keep = null] = compactCommand.exec(prompt.trim()) ?? [];
      const isRefused = refusal !== null || command === undefined;
      return {
        refusal: isRefused ? refusal : await this.beforeCompact(keep),
        contexts: verdict.contexts,
        sessionContexts,
      };
    } catch (error) {
      return { refusal: `A hook of the program failed: ${errorMessage(error)}`, contexts: [], sessionContexts };
    }
  }

  /** Calls the hooks on a compaction that the program requests. The reason why it is not requested, or null. Rejects when a hook fails. */
  async beforeCompact(instructions: string | null): Promise<string | null> {
    const { hooks, hookContext } = this.#deps;
    const input = { ...hookContext(), trigger: "manual", custom_instructions: instructions };
    const verdict = await hooks.call("PreCompact", input, "manual");
    if (verdict.stop === null && verdict.decision !== "deny") return null;
    return verdict.stop ?? verdict.reason ?? "A hook of the program refused the compaction.";
  }

  /** True if a Stop hook continues the run; its reason is the next message. */
  async #continues(result: RunResult): Promise<boolean> {
    const { hooks, hookContext, again, note } = this.#deps;
    if (result.is_error) {
      this.#forgetMessage();
      if (result.terminal_reason === "error") await this.#failed(result.result);
      return false;
    }
    try {
      const about = { stop_hook_active: this.#continued, last_assistant_message: result.result };
      const verdict = await hooks.call("Stop", { ...hookContext(), ...about });
      const texts = verdict.decision === "deny" ? [verdict.reason ?? "Continue."] : [];
      const next = [...texts, ...verdict.contexts].join("\n\n");
      this.#continued = next !== "" && verdict.stop === null;
      if (this.#continued) again(next);
    } catch (error) {
      this.#continued = false;
      note(`a Stop hook of the program failed: ${errorMessage(error)}`);
    }
    return this.#continued;
  }

  async #failed(text: string): Promise<void> {
    const { hooks, hookContext, note } = this.#deps;
    try {
      // The kind of the failure is known only to the leader, which logs it; the text names it.
      await hooks.call("StopFailure", { ...hookContext(), error: "unknown", error_details: text }, "unknown");
    } catch (error) {
      note(`a StopFailure hook of the program failed: ${errorMessage(error)}`);
    }
  }
}
