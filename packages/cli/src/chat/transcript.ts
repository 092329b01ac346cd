// Converts a session's events into display pieces in order: growing text, thinking, tool calls, retries, the end. Pure; `renderer.ts`
// formats the pieces.

import { type Message, type Origin, type SessionEvent, textOf } from "@parley/contracts";
import { remainder } from "@parley/projections";

import { LiveText } from "./live-text.ts";

export type Piece =
  /** Continues the text of this call. */
  | { type: "text"; text: string }
  /** The text shown for this call is discarded and restarts. */
  | { type: "restart" }
  | { type: "thinking"; text: string }
  | { type: "tool_started"; callId: string; tool: string; input: string }
  | {
      type: "tool_finished";
      callId: string;
      tool: string;
      input: string;
      isError: boolean;
      content: string;
      durationMs: number | null;
    }
  | { type: "retry"; attempt: number; delayMs: number; reason: string }
  /** This call needs approval. */
  | { type: "question"; approvalId: string; tool: string; summary: string; reason: string; expiresAt: string }
  | { type: "answered"; approvalId: string; tool: string; allowed: boolean; by: string }
  /** A side event: a compaction, another model, a sub-agent, a wait. */
  | { type: "aside"; text: string; tone: "plain" | "warning" }
  /** A person's message, for read-only viewers. */
  | { type: "said"; text: string }
  /** A notice to the user instead of, or after, a model answer. */
  | { type: "notice"; text: string }
  | { type: "end"; ok: boolean };

type Event<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

interface ShownCall {
  tool: string;
  input: string;
  state: "asked" | "started" | "finished";
}

/** The display state of one turn. */
export class Transcript {
  readonly #text = new LiveText();
  readonly #thinking = new LiveText();
  readonly #calls = new Map<string, ShownCall>();
  readonly #showSaid: boolean;
  /** A text has ended: the text of another call starts on a new line. */
  #parted = false;
  /** The committed texts so far. */
  #told: string[] = [];

  constructor(options: { showSaid: boolean }) {
    this.#showSaid = options.showSaid;
  }

  /** After a reconnect, deltas from the middle of an attempt are unusable. */
  connected(): void {
    this.#text.connected();
    this.#thinking.connected();
  }

  pieces(event: SessionEvent): Piece[] {
    switch (event.type) {
      case "turn.started":
        this.#text.restart();
        this.#thinking.restart();
        return [];
      case "text.delta":
        this.#thinking.heard();
        return this.#apart(grown(this.#text.delta(event.step, event.attempt, event.text), "text"));
      case "reasoning.delta":
        this.#text.heard();
        return grown(this.#thinking.delta(event.step, event.attempt, event.text), "thinking");
      case "model.retry":
        this.#live();
        return [{ type: "retry", attempt: event.attempt, delayMs: event.delayMs, reason: event.reason }];
      case "tool.started":
        this.#live();
        return this.#started(event);
      case "tool.progress": {
        this.#live();
        const { done, total, message } = event.progress;
        const far = total === null ? String(done) : `${done} of ${total}`;
        return [aside(`${event.tool}: ${far}${message === "" ? "" : `, ${message}`}`)];
      }
      case "tool.finished":
        this.#live();
        return this.#finished(event.callId, event.tool, event.isError, event.content, event.durationMs);
      case "message":
        return this.#message(event.message);
      case "turn.finished":
        return this.#end(event);
      case "model.failover":
        this.#live();
        return [aside(`${event.from} → ${event.to}: ${event.reason}`, "warning")];
      case "turn.parked":
        this.#live();
        return [aside(`waiting for ${namesOf(event.waitingFor)}`)];
      case "compaction.started":
        this.#live();
        return [aside("compacting: earlier messages are being summarised")];
      case "compacted":
        this.#live();
        return [aside(`compacted (${event.strategy}): ${event.tokensBefore} → ${event.tokensAfter} tokens`)];
      case "subagent.started": {
        this.#live();
        const how = event.mode === "wait" ? "waiting for its report" : "in the background";
        return [aside(`sub-agent ${event.profile} started, ${how} (${event.sessionId})`)];
      }
      case "approval.requested": {
        this.#live();
        const { approvalId, tool, summary, reason, expiresAt } = event;
        return [{ type: "question", approvalId, tool, summary, reason, expiresAt }];
      }
      case "approval.decided": {
        this.#live();
        const { approvalId, tool, allowed, by } = event;
        return [{ type: "answered", approvalId, tool, allowed, by }];
      }
      case "tool.denied":
        // Its result contains the reason.
        return [];
      case "question.asked": {
        this.#live();
        const options = event.options.map((option, index) => `\n  ${index + 1}. ${option}`).join("");
        return [aside(`${event.question}${options}\n(your next message is the answer)`, "warning")];
      }
      case "notice":
        this.#live();
        return [aside(event.text, "warning")];
      default:
        return event satisfies never;
    }
  }

  #apart(pieces: Piece[]): Piece[] {
    if (!this.#parted || pieces.length === 0) return pieces;
    this.#parted = false;
    return pieces.map((piece) => (piece.type === "text" ? { ...piece, text: `\n${piece.text}` } : piece));
  }

  #live(): void {
    this.#text.heard();
    this.#thinking.heard();
  }

  #started({ callId, tool, input }: { callId: string; tool: string; input: string }): Piece[] {
    const known = this.#calls.get(callId);
    if (known !== undefined && known.state !== "asked") return [];
    this.#calls.set(callId, { tool, input, state: "started" });
    return [{ type: "tool_started", callId, tool, input }];
  }

  #finished(callId: string, tool: string, isError: boolean, content: string, durationMs: number | null): Piece[] {
    const known = this.#calls.get(callId);
    if (known?.state === "finished") return [];
    const input = known?.input ?? "";
    this.#calls.set(callId, { tool, input, state: "finished" });
    return [{ type: "tool_finished", callId, tool, input, isError, content, durationMs }];
  }

  #message(message: Message): Piece[] {
    switch (message.role) {
      case "user": {
        const text = textOf(message.parts);
        if (text === "") return [];
        // Messages that no person sent are shown to everyone; messages of the loop to the model are not shown.
        if (message.from !== undefined && message.from.origin !== "user")
          return [aside(unaskedText(message.from, text))];
        return this.#showSaid && message.from !== undefined ? [{ type: "said", text }] : [];
      }
      case "assistant": {
        for (const part of message.parts) {
          if (part.type === "tool_call" && !this.#calls.has(part.id)) {
            this.#calls.set(part.id, { tool: part.name, input: part.input, state: "asked" });
          }
        }
        const text = textOf(message.parts);
        this.#thinking.commit(this.#thinking.shown);
        if (text !== "") this.#told.push(text);
        const pieces = this.#apart(grown(this.#text.commit(text), "text"));
        this.#parted = text !== "";
        return pieces;
      }
      case "tool":
        // Live events have already shown these calls, unless they were lost.
        return message.parts.flatMap((part) =>
          part.type === "tool_result" ? this.#finished(part.id, part.name, part.isError, part.content, null) : [],
        );
      default:
        return message.role satisfies never;
    }
  }

  #end({ state, text }: Event<"turn.finished">): Piece[] {
    const rest = remainder(text, this.#told);
    const pieces: Piece[] = rest.trim() === "" ? [] : [{ type: "notice", text: rest.trim() }];
    return [...pieces, { type: "end", ok: state === "done" }];
  }
}

/** A sub-agent's report already names its origin. */
function unaskedText({ origin }: { origin: Origin }, text: string): string {
  return origin === "subagent" ? text : `[${origin}] ${text}`;
}

function aside(text: string, tone: "plain" | "warning" = "plain"): Piece {
  return { type: "aside", text, tone };
}

function namesOf(tools: readonly string[]): string {
  return tools.length === 0 ? "somebody" : [...new Set(tools)].join(", ");
}

function grown({ text, restart }: { text: string; restart: boolean }, type: "text" | "thinking"): Piece[] {
  if (text === "") return [];
  return restart ? [{ type: "restart" }, { type, text }] : [{ type, text }];
}
