// From a session's events to what is to be shown, in order: text that only grows, thinking, tool calls, retries, the end. Pure; how it
// looks is `painting.ts`'s business.

import { textOf, type Message, type Origin, type SessionEvent } from "@parley/contracts";
import { restOf } from "@parley/projections";

import { LiveText } from "./live-text.ts";

export type Piece =
  /** Goes on where the text of this call was. */
  | { type: "text"; text: string }
  /** The text that was shown for this call counts no longer; it is said again. */
  | { type: "anew" }
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
  /** Somebody has to say whether this call may run. */
  | { type: "question"; approvalId: string; tool: string; summary: string; reason: string; expiresAt: string }
  | { type: "answered"; approvalId: string; tool: string; allowed: boolean; by: string }
  /** What happens besides: a compaction, another model, a sub-agent, a wait. */
  | { type: "aside"; text: string; tone: "plain" | "warning" }
  /** What a person said, for those who only watch. */
  | { type: "said"; text: string }
  /** What the user is told instead of, or after, an answer of the model. */
  | { type: "notice"; text: string }
  | { type: "end"; ok: boolean };

type Event<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>;

interface ShownCall {
  tool: string;
  input: string;
  state: "asked" | "started" | "finished";
}

/** One turn as it is shown. */
export class Transcript {
  readonly #text = new LiveText();
  readonly #thinking = new LiveText();
  readonly #calls = new Map<string, ShownCall>();
  readonly #showSaid: boolean;
  /** A text has ended: what another call says begins in a line of its own. */
  #parted = false;
  /** The committed texts so far. */
  #told: string[] = [];

  constructor(options: { showSaid: boolean }) {
    this.#showSaid = options.showSaid;
  }

  /** There is a new connection: what is said in the middle of something is no use. */
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
        return [aside("making room: earlier messages are being summarised")];
      case "compacted":
        this.#live();
        return [aside(`room made (${event.strategy}): ${event.tokensBefore} → ${event.tokensAfter} tokens`)];
      case "subagent.started": {
        this.#live();
        const how = event.mode === "wait" ? "its report is waited for" : "in the background";
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
        // Its result says why.
        return [];
      case "question.asked": {
        this.#live();
        const options = event.options.map((option, index) => `\n  ${index + 1}. ${option}`).join("");
        return [aside(`${event.question}${options}\n(what you say next is the answer)`, "warning")];
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
        // What no person said is news to everybody; what the loop says to the model is nobody's.
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
        // Live events have shown these calls, unless they were lost.
        return message.parts.flatMap((part) =>
          part.type === "tool_result" ? this.#finished(part.id, part.name, part.isError, part.content, null) : [],
        );
      default:
        return message.role satisfies never;
    }
  }

  #end({ state, text }: Event<"turn.finished">): Piece[] {
    const rest = restOf(text, this.#told);
    const pieces: Piece[] = rest.trim() === "" ? [] : [{ type: "notice", text: rest.trim() }];
    return [...pieces, { type: "end", ok: state === "done" }];
  }
}

/** A report says itself what it is. */
function unaskedText({ origin }: { origin: Origin }, text: string): string {
  return origin === "subagent" ? text : `[${origin}] ${text}`;
}

function aside(text: string, tone: "plain" | "warning" = "plain"): Piece {
  return { type: "aside", text, tone };
}

function namesOf(tools: readonly string[]): string {
  return tools.length === 0 ? "somebody" : [...new Set(tools)].join(", ");
}

function grown({ text, anew }: { text: string; anew: boolean }, type: "text" | "thinking"): Piece[] {
  if (text === "") return [];
  return anew ? [{ type: "anew" }, { type, text }] : [{ type, text }];
}
