// The stream that a program reads, with the hooks that follow it: PostToolUse after the results, Stop before the result of a turn.

import { errorMessage } from "@parley/contracts";
import type { SdkMessage } from "@parley/projections";

import type { ProgramHooks } from "./hooks.ts";

export interface ProgramStreamDeps {
  readonly hooks: ProgramHooks;
  readonly hookContext: () => Readonly<Record<string, unknown>>;
  readonly print: (message: SdkMessage) => void;
  readonly note: (text: string) => void;
  /** Ends the running turn. */
  readonly stop: () => void;
  /** Continues the run with another message. */
  readonly again: (text: string) => void;
}

interface Call {
  readonly tool: string;
  readonly input: unknown;
}

type Result = Extract<SdkMessage, { type: "result" }>;

export class ProgramStream {
  readonly #deps: ProgramStreamDeps;
  readonly #calls = new Map<string, Call>();
  /** The messages in order: a result waits for the Stop hooks. */
  #tail: Promise<void> = Promise.resolve();
  #hasStarted = false;
  /** The turn was started by a Stop hook. */
  #continued = false;

  constructor(deps: ProgramStreamDeps) {
    this.#deps = deps;
  }

  message(message: SdkMessage): void {
    const { hooks, print } = this.#deps;
    const isHookReport = message.type === "system" && message.subtype.startsWith("hook_");
    if (isHookReport || !hooks.has("Stop")) print(message);
    else {
      this.#tail = this.#printAfter(this.#tail, message);
    }
    this.#afterTools(message);
  }

  async #printAfter(previous: Promise<void>, message: SdkMessage): Promise<void> {
    await previous;
    if (message.type !== "result" || !(await this.#continues(message))) this.#deps.print(message);
  }

  /** Resolves when every message is printed. */
  flushed(): Promise<void> {
    return this.#tail;
  }

  /** Calls the hooks on a message of the program. `refusal`: why it is not sent. */
  async beforePrompt(prompt: string): Promise<{ refusal: string | null; contexts: readonly string[] }> {
    const { hooks, hookContext } = this.#deps;
    const contexts: string[] = [];
    try {
      if (!this.#hasStarted) {
        this.#hasStarted = true;
        contexts.push(...(await hooks.call("SessionStart", { ...hookContext(), source: "startup" })).contexts);
      }
      const verdict = await hooks.call("UserPromptSubmit", { ...hookContext(), prompt });
      const refusal = verdict.stop ?? (verdict.decision === "deny" ? verdict.reason : null);
      return { refusal, contexts: [...contexts, ...verdict.contexts] };
    } catch (error) {
      return { refusal: `A hook of the program failed: ${errorMessage(error)}`, contexts };
    }
  }

  /** True if a Stop hook continues the run; its reason is the next message. */
  async #continues(result: Result): Promise<boolean> {
    if (result.is_error) return false;
    const { hooks, hookContext, again, note } = this.#deps;
    try {
      const verdict = await hooks.call("Stop", { ...hookContext(), stop_hook_active: this.#continued });
      this.#continued = verdict.decision === "deny";
      if (this.#continued) again(verdict.reason ?? "Continue.");
    } catch (error) {
      this.#continued = false;
      note(`a Stop hook of the program failed: ${errorMessage(error)}`);
    }
    return this.#continued;
  }

  #afterTools(message: SdkMessage): void {
    const isOfSubagent = "parent_tool_use_id" in message && message.parent_tool_use_id !== null;
    if (isOfSubagent) return;
    if (message.type === "assistant") {
      for (const block of message.message.content) {
        if (block.type === "tool_use") this.#calls.set(block.id, { tool: block.name, input: block.input });
      }
    }
    if (message.type !== "user") return;
    for (const block of message.message.content) {
      if (block.type !== "tool_result") continue;
      const call = this.#calls.get(block.tool_use_id);
      if (call === undefined) continue;
      this.#calls.delete(block.tool_use_id);
      void this.#afterTool(block.tool_use_id, call, block.content, block.is_error);
    }
  }

  async #afterTool(callId: string, { tool, input }: Call, content: string, isError: boolean): Promise<void> {
    const { hooks, hookContext, note, stop } = this.#deps;
    const event = isError ? "PostToolUseFailure" : "PostToolUse";
    const about = { ...hookContext(), tool_name: tool, tool_input: input, tool_use_id: callId };
    const outcome = isError ? { error: content, is_interrupt: false } : { tool_response: content };
    try {
      const verdict = await hooks.call(event, { ...about, ...outcome }, tool, callId);
      if (verdict.stop !== null) stop();
      else if (verdict.decision === "deny" || verdict.contexts.length > 0) {
        note(`${event} of ${tool}: the hook's text cannot reach the model, because the result is already stored`);
      }
    } catch (error) {
      note(`${event} of ${tool}: the hook failed: ${errorMessage(error)}`);
    }
  }
}
