// Converts a session's events into display pieces in order: growing text, thinking, tool calls, retries, the end. Pure; the terminal
// chat turns the pieces into what it shows.

import { type Message, type Sender, type SessionEvent, textOf } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import { remainder } from "@parley/projections";

import { LiveText } from "./live-text.ts";

export type Piece =
  /** Continues the text of this call. */
  | { type: "text"; text: string }
  /** The text shown for this call is discarded and restarts. */
  | { type: "restart" }
  | { type: "thinking"; text: string }
  | { type: "tool_started"; callId: string; tool: string; input: string }
  | { type: "tool_progress"; callId: string; tool: string; text: string }
  | {
      type: "tool_finished";
      callId: string;
      tool: string;
      input: string;
      isError: boolean;
      content: string;
      durationMs: number | null;
      /** The isolation that the command ran under; null: no command, or unknown. */
      isolation: string | null;
    }
  /** The committed result of a finished call: the complete text, where an event has a truncated one. */
  | { type: "tool_result"; callId: string; content: string; isDenied: boolean }
  /** The call was denied and does not run. */
  | { type: "tool_denied"; callId: string; tool: string; input: string; reason: string }
  | { type: "retry"; attempt: number; delayMs: number; reason: string }
  /** This call needs approval. */
  | {
      type: "question";
      approvalId: string;
      tool: string;
      summary: string;
      reason: string;
      expiresAt: string;
      /** JSON text of the complete arguments; empty: unknown. */
      input: string;
      /** False: an approval covers this call only. */
      mayAlways: boolean;
    }
  /** `message`: why the person denied the call; empty: they gave no reason. */
  | { type: "answered"; approvalId: string; tool: string; allowed: boolean; by: string; message: string }
  /** The agent, or an MCP server, asks a person. */
  | { type: "asked"; callId: string; question: string; options: readonly string[] }
  /** The turn waits for these tools. */
  | { type: "parked"; waitingFor: string }
  /** A side event: a compaction, another model, a sub-agent. */
  | { type: "aside"; text: string; tone: "plain" | "warning" }
  /** A person's message. */
  | { type: "said"; text: string; from: Sender }
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
  /** The committed texts so far. */
  #committedTexts: string[] = [];

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
        this.#thinking.eventReceived();
        return grown(this.#text.delta(event.step, event.attempt, event.text), "text");
      case "reasoning.delta":
        this.#text.eventReceived();
        return grown(this.#thinking.delta(event.step, event.attempt, event.text), "thinking");
      case "model.retry":
        this.#live();
        return [{ type: "retry", attempt: event.attempt, delayMs: event.delayMs, reason: event.reason }];
      case "tool.started":
        this.#live();
        return this.#started(event);
      case "tool.progress": {
        this.#live();
        const { done, total, message, output } = event.progress;
        if (output !== undefined)
          return [{ type: "tool_progress", callId: event.callId, tool: event.tool, text: output }];
        const far = total === null ? String(done) : `${done} of ${total}`;
        const text = `${far}${message === "" ? "" : `, ${message}`}`;
        return [{ type: "tool_progress", callId: event.callId, tool: event.tool, text }];
      }
      case "tool.finished":
        this.#live();
        return this.#finished({ ...event, isolation: event.isolation ?? null });
      case "message":
        return this.#message(event.message);
      case "turn.finished":
        return this.#end(event);
      case "model.failover":
        this.#live();
        return [aside(`${event.from} → ${event.to}: ${event.reason}`, "warning")];
      case "turn.parked":
        this.#live();
        return [{ type: "parked", waitingFor: namesOf(event.waitingFor) }];
      case "compaction.started":
        this.#live();
        return [aside("compacting: earlier messages are being summarised")];
      case "compacted":
        this.#live();
        return [aside(`compacted (${event.strategy}): ${event.tokensBefore} → ${event.tokensAfter} tokens`)];
      case "rewound":
        this.#live();
        return [aside(`files rewound: ${event.paths.join(", ")}`)];
      case "subagent.started": {
        this.#live();
        const how = event.mode === "wait" ? "waiting for its report" : "in the background";
        return [aside(`sub-agent ${event.profile} started, ${how} (${event.sessionId})`)];
      }
      case "approval.requested": {
        this.#live();
        const { approvalId, tool, summary, reason, expiresAt, input = "", mayAlways = true } = event;
        return [{ type: "question", approvalId, tool, summary, reason, expiresAt, input, mayAlways }];
      }
      case "approval.decided": {
        this.#live();
        const { approvalId, tool, allowed, by, message = "" } = event;
        return [{ type: "answered", approvalId, tool, allowed, by, message }];
      }
      case "tool.input":
        // The start of the call shows its arguments.
        return [];
      case "tool.denied":
        this.#live();
        return this.#denied(event);
      case "question.asked":
        this.#live();
        return [{ type: "asked", callId: event.callId, question: event.question, options: event.options }];
      case "notice":
        this.#live();
        return [aside(event.text, "warning")];
      default:
        return event satisfies never;
    }
  }

  #live(): void {
    this.#text.eventReceived();
    this.#thinking.eventReceived();
  }

  #started({ callId, tool, input }: { callId: string; tool: string; input: string }): Piece[] {
    const known = this.#calls.get(callId);
    if (known !== undefined && known.state !== "asked") return [];
    this.#calls.set(callId, { tool, input, state: "started" });
    return [{ type: "tool_started", callId, tool, input }];
  }

  #denied({ callId, tool, reason }: Event<"tool.denied">): Piece[] {
    const known = this.#calls.get(callId);
    if (known?.state === "finished") return [];
    const input = known?.input ?? "";
    this.#calls.set(callId, { tool, input, state: "finished" });
    return [{ type: "tool_denied", callId, tool, input, reason }];
  }

  #finished(call: Omit<Extract<Piece, { type: "tool_finished" }>, "type" | "input">): Piece[] {
    const { callId, tool, isError, content, durationMs, isolation } = call;
    const known = this.#calls.get(callId);
    if (known?.state === "finished") return [];
    const input = known?.input ?? "";
    this.#calls.set(callId, { tool, input, state: "finished" });
    return [{ type: "tool_finished", callId, tool, input, isError, content, durationMs, isolation }];
  }

  #message(message: Message): Piece[] {
    switch (message.role) {
      case "user": {
        const text = textOf(message.parts);
        if (text === "") return [];
        // Messages that no person sent are shown to everyone; messages of the loop to the model are not shown.
        if (message.from !== undefined && message.from.origin !== "user")
          return [aside(unaskedText(message.from, text))];
        return message.from === undefined ? [] : [{ type: "said", text, from: message.from }];
      }
      case "assistant": {
        for (const part of message.parts) {
          if (part.type === "tool_call" && !this.#calls.has(part.id)) {
            this.#calls.set(part.id, { tool: part.name, input: part.input, state: "asked" });
          }
        }
        const text = textOf(message.parts);
        this.#thinking.commit(this.#thinking.shown);
        if (text !== "") this.#committedTexts.push(text);
        return grown(this.#text.commit(text), "text");
      }
      case "tool":
        // Live events have already shown these calls, unless they were lost.
        return message.parts.flatMap((part) => {
          if (part.type !== "tool_result") return [];
          const { id: callId, name: tool, isError, content, isolation = null, refused = false } = part;
          return [
            ...this.#finished({ callId, tool, isError, content, durationMs: null, isolation }),
            { type: "tool_result" as const, callId, content, isDenied: refused },
          ];
        });
      default:
        return message.role satisfies never;
    }
  }

  #end({ state, text }: Event<"turn.finished">): Piece[] {
    const rest = remainder(text, this.#committedTexts);
    const pieces: Piece[] = rest.trim() === "" ? [] : [{ type: "notice", text: rest.trim() }];
    return [...pieces, { type: "end", ok: state === "done" }];
  }
}

const maxUnaskedChars = 160;

/** The first line of input that no person sent: the rest is meant for the model. A sub-agent's report is complete and names its origin. */
function unaskedText({ origin }: Sender, text: string): string {
  if (origin === "subagent") return text;
  return `${origin}: ${oneLine(text.trim().split("\n", 1)[0] ?? "", maxUnaskedChars)}`;
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
