// Converts the events of a run into the message stream and its final result, and counts what is left of its limits. It holds back all
// output until the agent's data is known, because the init message comes first.

import type { SessionEvent } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import {
  type SdkBody,
  type SdkInit,
  type SdkMessage,
  SdkMessages,
  SdkSubagentMessages,
  type SubagentOptions,
} from "@parley/projections";

export type RunResult = Extract<SdkMessage, { type: "result" }>;
export type Limit = "max_turns" | "max_budget";

/** A missing field: unlimited. */
export interface RemainingLimits {
  readonly maxModelCalls?: number;
  readonly maxCostMicros?: number;
}

/** The result of a message that is not sent because of a limit. */
export function limitText(limit: Limit, { maxModelCalls, maxUsd }: StreamOptions): string {
  if (limit === "max_turns") return `The run has made its ${maxModelCalls} model calls.`;
  return `The run has spent its ${maxUsd} US dollars.`;
}

/** A sub-agent whose messages are part of the stream. */
export interface SubagentInStream extends SubagentOptions {
  readonly profile: string;
}

export interface RunListener {
  /** `subagent`: the sub-agent of the message; omitted: the run itself. Ids of calls are unique only within one of them. */
  message(message: SdkMessage, subagent?: SubagentInStream): void;
  /** The result of a message that started no turn. */
  resultWithoutTurn(result: RunResult): void;
}

export interface StreamOptions {
  readonly partial: boolean;
  /** Model calls of the run; null: unlimited. */
  readonly maxModelCalls: number | null;
  /** US dollars of the run; null: unlimited. */
  readonly maxUsd?: number | null;
}

export class RunStream {
  readonly #options: StreamOptions;
  readonly #listener: RunListener;
  #messages: SdkMessages | null = null;
  #init: SdkInit | null = null;
  /** The streams of sub-agents, by their session and the call that started them. */
  readonly #subagents = new Map<string, SdkSubagentMessages>();
  /** Calls that came before `begin`, in order. */
  #held: (() => void)[] = [];
  #result: RunResult | null = null;

  constructor(options: StreamOptions, listener: RunListener) {
    this.#options = options;
    this.#listener = listener;
  }

  /** The newest result. */
  get result(): RunResult | null {
    return this.#result;
  }

  /** What is left of the limits of the run after its ended turns, or the limit that they have used up. */
  get remaining(): Limit | RemainingLimits {
    const { maxModelCalls, maxUsd = null } = this.#options;
    const { modelCalls = 0, costMicros = 0 } = this.#messages ?? {};
    const calls = maxModelCalls === null ? undefined : maxModelCalls - modelCalls;
    const micros = maxUsd === null ? undefined : Math.round(maxUsd * 1_000_000) - costMicros;
    if (calls !== undefined && calls <= 0) return "max_turns";
    if (micros !== undefined && micros <= 0) return "max_budget";
    return omitUndefined({ maxModelCalls: calls, maxCostMicros: micros });
  }

  /** Starts the stream with the agent's data. Further calls have no effect. */
  begin(init: SdkInit): void {
    if (this.#messages !== null) return;
    this.#init = init;
    this.#messages = new SdkMessages(init, { partial: this.#options.partial });
    this.#publish(this.#messages.begin());
    const held = this.#held;
    this.#held = [];
    for (const call of held) call();
  }

  /** `atMs`: time of receipt, in milliseconds since 1970. */
  event(event: SessionEvent, atMs: number): void {
    const messages = this.#messages;
    if (messages === null) this.#held.push(() => this.event(event, atMs));
    else this.#publish(messages.event(event, atMs));
  }

  /** An event of a sub-agent's session. */
  subagentEvent(subagent: SubagentInStream, event: SessionEvent, atMs: number): void {
    const [init, messages] = [this.#init, this.#messages];
    if (init === null || messages === null) {
      this.#held.push(() => this.subagentEvent(subagent, event, atMs));
      return;
    }
    const name = `${subagent.sessionId}/${subagent.toolUseId}`;
    const stream = this.#subagents.get(name) ?? new SdkSubagentMessages(init, subagent, messages);
    this.#subagents.set(name, stream);
    this.#publish(stream.event(event, atMs), subagent);
  }

  /** A message that no event caused. */
  extra(body: SdkBody): void {
    if (this.#messages === null) this.#held.push(() => this.extra(body));
    else this.#publish([this.#messages.extra(body)]);
  }

  /** The outcome of a message without a turn: a command's result, a refusal, or a limit of the run. */
  resultWithoutTurn(text: string, reason: "end_turn" | "error" | Limit): void {
    const message = this.#messages?.outside(text, reason);
    if (message?.type !== "result") return;
    this.#result = message;
    this.#listener.resultWithoutTurn(message);
  }

  #publish(messages: readonly SdkMessage[], subagent?: SubagentInStream): void {
    for (const message of messages) {
      if (message.type === "result") this.#result = message;
      this.#listener.message(message, subagent);
    }
  }
}
