// A session's events as an SDK-style message stream:
//
//   system init → ( [stream_event]* → assistant → tool_progress start/progress/end → user with the results )* → result
//
// In between: system messages (compactions, retries, sub-agents, permissions, notices). Invariants: init is first and unique, every
// tool_use is followed by its tool_result, and the result is the last message of a turn. Lost live events leave gaps but never break
// these. Pure: each event carries its time.
import { createHash } from "node:crypto";
import { noUsage, ownToolName, textOf, type Message, type SessionEvent } from "@parley/contracts";
import { Position } from "./position.ts";
import { blocksOf, jsonOr, resultOf, stopOf } from "./sdk-blocks.ts";
import { boundaryOf, retryOf, taskEnd, taskOf } from "./sdk-system.ts";
import { initBody } from "./sdk-init.ts";
import { RunTotals, sdkUsage } from "./sdk-totals.ts";
import { SdkTurn } from "./sdk-turn.ts";
import type { SdkBody, SdkInit, SdkMessage, StreamEvent } from "./sdk-types.ts";

export interface SdkOptions {
  /** Also include partial messages (`stream_event`). */
  partial: boolean;
}

export interface TimedEvent {
  event: SessionEvent;
  /** When the event was received: milliseconds since 1970. */
  atMs: number;
}

type Event<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

/** The stream of one run: one session, with one turn or several consecutive ones. */
export class SdkMessages {
  readonly #sessionId: string;
  readonly #options: SdkOptions;
  readonly #init: SdkInit;
  readonly #turns = new Map<string, SdkTurn>();
  readonly #over = new Set<string>();
  /** Tool calls that started a background sub-agent, by its session; its report arrives in another turn. */
  readonly #background = new Map<string, string>();
  readonly #position = new Position();
  /** The sums of its ended turns. */
  readonly totals: RunTotals;
  #outside = 0;

  /** `run`: the sums of the run that started this sub-agent. */
  constructor(init: SdkInit, options: SdkOptions, run?: RunTotals) {
    this.totals = new RunTotals(run);
    this.#sessionId = init.sessionId;
    this.#init = init;
    this.#options = options;
  }

  /** Returns the messages before the first event. */
  begin(): SdkMessage[] {
    return [this.#envelope(initBody(this.#init), "init", 0)];
  }

  /** Returns the messages for an event. */
  event(event: SessionEvent, atMs: number): SdkMessage[] {
    const turnId = turnOf(event);
    if (this.#over.has(turnId) || this.#position.isOld(event)) return [];
    let turn = this.#turns.get(turnId);
    if (turn === undefined) {
      turn = new SdkTurn(atMs);
      this.#turns.set(turnId, turn);
    }
    const bodies = this.#bodies(turn, turnId, event, atMs);
    const messages = bodies.map((body) => this.#envelope(body, turnId, turn.messageCount++));
    if (event.type === "turn.finished") {
      this.#turns.delete(turnId);
      this.#over.add(turnId);
    }
    return messages;
  }

  /** The result of a message that started no turn: a command's answer, a refusal, or a limit of the run. */
  outside(text: string, reason: "end_turn" | "error" | "max_turns" | "max_budget"): SdkMessage {
    const turn = { text, durationMs: 0, toolMs: 0, stopReason: null, denials: [] };
    return this.extra(resultOf(reason, turn, this.totals));
  }

  /** A message that no event caused. */
  extra(body: SdkBody): SdkMessage {
    this.#outside += 1;
    return this.#envelope(body, "outside", this.#outside);
  }

  /** The number of model calls of the ended turns of the run. */
  get modelCalls(): number {
    return this.totals.modelCalls;
  }

  /** The cost of the ended turns of the run, in millionths of a US dollar; calls without a known price are not included. */
  get costMicros(): number {
    return this.totals.cost.micros;
  }

  #bodies(turn: SdkTurn, turnId: string, event: SessionEvent, atMs: number): SdkBody[] {
    switch (event.type) {
      case "turn.started":
        turn.partial.restart();
        turn.held = [];
        return over(turn, "waiting");
      case "text.delta":
        return [...over(turn, "waiting"), ...this.#delta(turn, turnId, "text", event, atMs)];
      case "reasoning.delta":
        return [...over(turn, "waiting"), ...this.#delta(turn, turnId, "thinking", event, atMs)];
      case "model.retry":
        return [retryOf(event)];
      case "model.failover": {
        const { from, to, reason } = event;
        return [{ type: "system", subtype: "model_fallback", from_model: from, to_model: to, reason }];
      }
      case "tool.started":
        return turn.hasCall(event.callId) ? turn.started(event.callId, atMs) : turn.keepEarly(event, atMs);
      case "tool.progress":
        // Their clients know figures and messages of tools; what a command prints is in its result.
        return event.progress.output === undefined ? turn.moved(event.callId, atMs, event.progress) : [];
      case "tool.finished":
        if (!turn.hasCall(event.callId)) return turn.keepEarly(event, atMs);
        return turn.finished(event.callId, atMs, event.durationMs);
      case "message":
        return this.#message(turn, turnId, event, atMs);
      case "turn.finished":
        return this.#end(turn, event, atMs);
      case "turn.parked":
        turn.waiting = true;
        return [
          { type: "system", subtype: "status", status: "waiting", waiting_for: event.waitingFor.map(ownToolName) },
        ];
      case "compaction.started":
        turn.compacting = true;
        return [{ type: "system", subtype: "status", status: "compacting" }];
      case "compacted":
        return [boundaryOf(event), ...over(turn, "compacting")];
      case "rewound":
        // Their clients know no such message.
        return [];
      case "subagent.started": {
        const { callId, sessionId, mode } = event;
        if (mode === "wait") turn.tasks.set(callId, sessionId);
        else this.#background.set(sessionId, callId);
        return [taskOf(event)];
      }
      case "approval.requested": {
        const call = { request_id: event.approvalId, tool_name: ownToolName(event.tool), tool_use_id: event.callId };
        const { summary: description, reason, expiresAt, input } = event;
        const args = input === undefined ? {} : { input: jsonOr(input) };
        const details = { ...call, description, reason, expires_at: expiresAt, ...args };
        return [{ type: "system", subtype: "permission_request", ...details }];
      }
      case "approval.decided": {
        const { approvalId, tool, callId, allowed, by } = event;
        if (!allowed) turn.denied(callId, tool);
        const call = { request_id: approvalId, tool_name: ownToolName(tool), tool_use_id: callId };
        return [{ type: "system", subtype: "permission_decided", ...call, allowed, by }];
      }
      case "tool.input":
        return over(turn, "waiting");
      case "tool.denied":
        return turn.refused(event.callId, event.reason);
      case "question.asked": {
        const { callId, question, options, expiresAt } = event;
        const details = { tool_use_id: callId, question, options, expires_at: expiresAt };
        return [{ type: "system", subtype: "user_question", ...details }];
      }
      case "notice":
        return [{ type: "system", subtype: "notice", text: event.text }];
      default:
        return event satisfies never;
    }
  }

  #delta(
    turn: SdkTurn,
    turnId: string,
    kind: "text" | "thinking",
    delta: Event<"text.delta" | "reasoning.delta">,
    atMs: number,
  ): SdkBody[] {
    if (!this.#options.partial) return [];
    // Live events overtake durable ones: the results of the calls come first.
    if (turn.open) {
      turn.held.push({ event: delta, atMs });
      return [];
    }
    return streamed(turn.partial.delta(messageId(turnId, turn.modelCalls + 1), kind, delta, this.#init.model));
  }

  #message(turn: SdkTurn, turnId: string, { message, usage: spent }: Event<"message">, atMs: number): SdkBody[] {
    switch (message.role) {
      case "user":
        return this.#userMessage(message);
      case "assistant": {
        turn.modelReply(message, atMs);
        const id = messageId(turnId, turn.modelCalls);
        const { model } = message;
        const content = blocksOf(message.parts);
        const stop = stopOf(message);
        const usage = sdkUsage(spent ?? noUsage);
        const reply = { id, model, content, stop, usage };
        const partial = this.#options.partial ? streamed(turn.partial.commit(reply)) : [];
        if (content.length === 0) return partial;
        const assistantMessage = { id, type: "message", role: "assistant", model, content, ...stop, usage } as const;
        const early = turn.takeEarly().flatMap((each) => this.#bodies(turn, turnId, each.event, each.atMs));
        return [...partial, { type: "assistant", parent_tool_use_id: null, message: assistantMessage }, ...early];
      }
      case "tool": {
        const answered = [...over(turn, "waiting"), ...turn.answered(message.parts, atMs)];
        if (turn.open) return answered;
        const { held } = turn;
        turn.held = [];
        return [...answered, ...held.flatMap((late) => this.#bodies(turn, turnId, late.event, late.atMs))];
      }
      default:
        return message.role satisfies never;
    }
  }

  /** Messages of people are the caller's own and are omitted; notes of the loop and sub-agent reports are included. */
  #userMessage({ parts, from }: Message): SdkBody[] {
    const text = textOf(parts);
    if (from?.origin === "subagent") return [this.#report(from.contact.id, text)];
    if (from !== undefined || text === "") return [];
    const message = { role: "user", content: [{ type: "text", text }] } as const;
    return [{ type: "user", parent_tool_use_id: null, message, isSynthetic: true }];
  }

  /** The first line of a report states how the task ended; the rest is the sub-agent's text. */
  #report(task: string, text: string): SdkBody {
    const [head = "", ...rest] = text.split("\n");
    const call = this.#background.get(task);
    this.#background.delete(task);
    const status = head.includes("has not finished") ? "failed" : "completed";
    return taskEnd(task, call, status, rest.join("\n").trim());
  }

  #end(turn: SdkTurn, { text, exitReason, usage, cost, treeCost }: Event<"turn.finished">, atMs: number): SdkBody[] {
    const left = turn.abandoned(atMs);
    const { modelCalls, models, stopReason, toolMs, denials } = turn;
    this.totals.add({ modelCalls, models, usage, cost, treeCost: treeCost ?? cost });
    const ended = { text, durationMs: Math.max(0, atMs - turn.begunAt), toolMs, stopReason, denials };
    return [...streamed(turn.partial.stop()), ...left, resultOf(exitReason, ended, this.totals)];
  }

  #envelope(body: SdkBody, of: string, n: number): SdkMessage {
    return { ...body, uuid: uuidOf(`${this.#sessionId}/${of}/${n}`), session_id: this.#sessionId };
  }
}

/** All messages of a run that has ended. */
export function sdkMessages(init: SdkInit, events: readonly TimedEvent[], options: SdkOptions): SdkMessage[] {
  const stream = new SdkMessages(init, options);
  return [...stream.begin(), ...events.flatMap(({ event, atMs }) => stream.event(event, atMs))];
}

/** Ends a status that was reported before. */
function over(turn: SdkTurn, what: "waiting" | "compacting"): SdkBody[] {
  if (!turn[what]) return [];
  turn[what] = false;
  return [{ type: "system", subtype: "status", status: null }];
}

function streamed(events: readonly StreamEvent[]): SdkBody[] {
  return events.map((event) => ({ type: "stream_event", parent_tool_use_id: null, event }));
}

/** The n-th model call of a turn. */
function messageId(turnId: string, n: number): string {
  return `msg_${turnId}_${n}`;
}

function turnOf(event: SessionEvent): string {
  return event.type === "message" ? event.message.turnId : event.turnId;
}

/** A name-based UUID (RFC 9562, version 8). */
function uuidOf(name: string): string {
  const hex = createHash("sha256").update(name).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
