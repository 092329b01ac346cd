// Converts the events of a run into the message stream and its final result. It holds back all output until the agent's data is known,
// because the init message comes first.

import type { SessionEvent } from "@parley/contracts";
import { type SdkInit, type SdkMessage, SdkMessages } from "@parley/projections";

type Result = Extract<SdkMessage, { type: "result" }>;

export interface RunListener {
  message(message: SdkMessage): void;
  /** The turn has used its model calls and needs another. */
  overTurns(turnId: string): void;
}

export class RunStream {
  readonly #options: { readonly partial: boolean; readonly maxTurns: number | null };
  readonly #listener: RunListener;
  #messages: SdkMessages | null = null;
  #waiting: { event: SessionEvent; atMs: number }[] = [];
  readonly #stopped = new Set<string>();
  #result: Result | null = null;

  constructor(options: { readonly partial: boolean; readonly maxTurns: number | null }, listener: RunListener) {
    this.#options = options;
    this.#listener = listener;
  }

  /** The newest result. */
  get result(): Result | null {
    return this.#result;
  }

  get begun(): boolean {
    return this.#messages !== null;
  }

  /** Starts the stream with the agent's data. Further calls have no effect. */
  begin(init: SdkInit): void {
    if (this.#messages !== null) return;
    this.#messages = new SdkMessages(init, { partial: this.#options.partial });
    this.#tell(this.#messages.begin());
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { event, atMs } of waiting) this.event(event, atMs);
  }

  /** `atMs`: time of receipt, in milliseconds since 1970. */
  event(event: SessionEvent, atMs: number): void {
    const messages = this.#messages;
    if (messages === null) {
      this.#waiting.push({ event, atMs });
      return;
    }
    this.#tell(messages.event(event, atMs));
    this.#limit(messages, event);
  }

  /** The outcome of a message without a turn: a command's result or a refusal. */
  outside(text: string, isError: boolean): void {
    if (this.#messages !== null) this.#tell([this.#messages.outside(text, isError)]);
  }

  /** Stops a turn that needs another model call beyond its limit. */
  #limit(messages: SdkMessages, event: SessionEvent): void {
    const { maxTurns } = this.#options;
    if (maxTurns === null || event.type !== "message") return;
    const { turnId, role, from } = event.message;
    const { modelCalls, open } = messages.progress(turnId);
    const goesOn = open || (role === "user" && from === undefined);
    if (modelCalls < maxTurns || !goesOn || this.#stopped.has(turnId)) return;
    this.#stopped.add(turnId);
    messages.overTurns(turnId);
    this.#listener.overTurns(turnId);
  }

  #tell(messages: readonly SdkMessage[]): void {
    for (const message of messages) {
      if (message.type === "result") this.#result = message;
      this.#listener.message(message);
    }
  }
}
