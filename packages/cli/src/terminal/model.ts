// Folds events of the gateway and actions of the person into the state of the terminal chat. Deterministic: the same inputs give the same
// state; time is an input.

import type { Message, Sender, SessionEvent } from "@parley/contracts";

import type { Outcome } from "../chat/turns.ts";
import { type Piece, Transcript } from "../chat/transcript.ts";
import { stripControl } from "../tables/format.ts";
import { applyPiece } from "./pieces.ts";
import { type ChatState, emptyState, type Entry, type RunningTurn } from "./state.ts";
import { append, closeQuestions, closeTurn, takeMessage } from "./updates.ts";

export type ChatInput =
  | { type: "event"; event: SessionEvent }
  | { type: "connected"; again: boolean }
  | { type: "lost"; reason: string }
  /** A message, with the names of its files; `isCommand`: no turn answers it. */
  | { type: "sent"; id: string; text: string; files: readonly string[]; isCommand: boolean }
  | { type: "accepted"; id: string }
  /** A turn has taken the message. */
  | { type: "taken"; id: string; turnId: string }
  | { type: "settled"; id: string; outcome: Outcome; isReported: boolean }
  /** The person has answered this question by a message. */
  | { type: "answered"; callId: string }
  | { type: "stopping" }
  /** The requested stop had no running turn to end, so no end of a turn follows. */
  | { type: "stopped" }
  /** The chat itself asks; null: no longer. */
  | { type: "prompt"; text: string | null }
  | { type: "cleared" }
  | { type: "entry"; entry: Entry };

/** More entries than this are not drawn: the oldest half goes. */
const maxEntries = 2_000;

export class ChatModel {
  #state: ChatState = emptyState;
  readonly #transcripts = new Map<string, Transcript>();
  /** The conversation of this chat: its other messages come from voice or from another chat. */
  readonly #conversation: string | null;

  constructor(conversation: string | null) {
    this.#conversation = conversation;
  }

  get state(): ChatState {
    return this.#state;
  }

  /** `nowMs`: milliseconds since 1970. */
  apply(input: ChatInput, nowMs: number): void {
    const next = this.#next(this.#state, input, nowMs);
    const { entries } = next;
    this.#state =
      entries.length <= maxEntries
        ? next
        : { ...next, entries: entries.slice(maxEntries / 2), growing: new Map(), calls: new Map() };
  }

  #next(state: ChatState, input: ChatInput, nowMs: number): ChatState {
    switch (input.type) {
      case "event":
        return this.#event(state, input.event, nowMs);
      case "connected": {
        for (const transcript of this.#transcripts.values()) transcript.connected();
        if (state.isConnected) return state;
        const back = input.again ? append(state, { kind: "note", tone: "plain", text: "reconnected" }) : state;
        return { ...back, isConnected: true };
      }
      case "lost": {
        if (!state.isConnected) return state;
        const text = `connection lost (${stripControl(input.reason)}); reconnecting`;
        return { ...append(state, { kind: "note", tone: "warning", text }), isConnected: false };
      }
      case "sent": {
        const { id, text, files, isCommand } = input;
        if (isCommand) return append(state, { kind: "said", text, by: "you", files });
        const message = { id, text, files, isAccepted: false, sentAtMs: nowMs };
        return { ...state, waiting: [...state.waiting, message] };
      }
      case "accepted":
        return {
          ...state,
          waiting: state.waiting.map((each) => (each.id === input.id ? { ...each, isAccepted: true } : each)),
        };
      case "taken":
        return takeMessage(state, input.id, input.turnId);
      case "settled":
        return this.#settled(state, input);
      case "answered":
        return closeQuestions(state, ({ callId }) => callId === input.callId);
      case "stopping":
        return append({ ...state, isStopping: true }, { kind: "note", tone: "plain", text: "stopping" });
      case "stopped":
        return { ...state, isStopping: false };
      case "prompt":
        return { ...state, prompt: input.text };
      case "cleared":
        return { ...state, entries: [], growing: new Map(), calls: new Map() };
      case "entry":
        return append(state, input.entry);
      default:
        return input satisfies never;
    }
  }

  #event(before: ChatState, event: SessionEvent, nowMs: number): ChatState {
    const turnId = event.type === "message" ? event.message.turnId : event.turnId;
    let transcript = this.#transcripts.get(turnId);
    if (transcript === undefined) {
      transcript = new Transcript();
      this.#transcripts.set(turnId, transcript);
    }
    let state = before;
    for (const piece of transcript.pieces(event)) state = this.#piece(state, turnId, piece);
    if (event.type === "message") state = { ...state, growing: without(state.growing, turnId) };
    if (event.type !== "turn.finished") return withTurn(state, turnId, event, nowMs);
    this.#transcripts.delete(turnId);
    const { spent } = state;
    const ended = closeTurn(state, turnId);
    return {
      ...ended,
      turns: without(state.turns, turnId),
      growing: without(state.growing, turnId),
      taken: state.taken.filter((each) => each.turnId !== turnId),
      isStopping: false,
      spent: {
        inputTokens: spent.inputTokens + event.usage.inputTokens,
        outputTokens: spent.outputTokens + event.usage.outputTokens,
        cost: {
          micros: spent.cost.micros + event.cost.micros,
          unpricedCalls: spent.cost.unpricedCalls + event.cost.unpricedCalls,
        },
      },
    };
  }

  #piece(state: ChatState, turnId: string, piece: Piece): ChatState {
    if (piece.type !== "said") return applyPiece(state, turnId, piece);
    const rest = state.taken.filter((each) => !(each.turnId === turnId && contains(piece.text, each.text)));
    if (rest.length < state.taken.length) return { ...state, taken: rest };
    return append(state, { kind: "said", text: piece.text, by: this.#senderKind(piece.from), files: [] });
  }

  #senderKind({ channel, conversation, spoken: isSpoken }: Sender): "voice" | "elsewhere" {
    return isSpoken === true && channel === "http" && conversation === this.#conversation ? "voice" : "elsewhere";
  }

  #settled(before: ChatState, { id, outcome, isReported }: Extract<ChatInput, { type: "settled" }>): ChatState {
    const waiting = before.waiting.find((each) => each.id === id);
    const state = { ...before, waiting: before.waiting.filter((each) => each.id !== id) };
    const text = stripControl(outcome.text);
    if (outcome.state === "command") return isReported ? state : append(state, { kind: "output", text });
    if (outcome.state === "refused") return append(state, { kind: "note", tone: "error", text });
    // No turn took it: its end was not shown by events.
    if (waiting === undefined) return state;
    return append(append(state, { kind: "said", text: waiting.text, by: "you", files: waiting.files }), {
      kind: "note",
      tone: outcome.state === "done" ? "plain" : "warning",
      text,
    });
  }
}

/** One of the lines or paragraphs of the message is the text: messages may be joined into one. */
function contains(message: string, text: string): boolean {
  return message.trim() === text.trim() || `\n${message}\n`.includes(`\n${text.trim()}\n`);
}

function without<V>(map: ReadonlyMap<string, V>, key: string): ReadonlyMap<string, V> {
  if (!map.has(key)) return map;
  const rest = new Map(map);
  rest.delete(key);
  return rest;
}

/** The state with what the event says of the running turn. */
function withTurn(
  state: ChatState,
  turnId: string,
  event: Exclude<SessionEvent, { type: "turn.finished" }>,
  nowMs: number,
): ChatState {
  // The notice of a voice session or of a turn that has ended starts no turn.
  if (event.type === "notice" || event.type === "compacted" || event.type === "rewound") return state;
  const known = state.turns.get(turnId);
  const turn = known ?? { activity: "thinking" as const, sinceMs: startOf(state, nowMs), tools: new Map() };
  const next = nextTurn(turn, event, nowMs);
  return next === known ? state : { ...state, turns: new Map(state.turns).set(turnId, next) };
}

/** A turn that takes a message of ours has been thinking since the message was sent. */
function startOf({ waiting, turns }: ChatState, nowMs: number): number {
  return turns.size === 0 ? (waiting[0]?.sentAtMs ?? nowMs) : nowMs;
}

function nextTurn(turn: RunningTurn, event: SessionEvent, nowMs: number): RunningTurn {
  const doing = (activity: RunningTurn["activity"]): RunningTurn =>
    turn.activity === activity ? turn : { ...turn, activity, sinceMs: nowMs };
  switch (event.type) {
    case "text.delta":
      return doing("writing");
    case "reasoning.delta":
    case "model.failover":
      return doing("thinking");
    case "model.retry":
      return doing("retrying");
    case "compaction.started":
      return doing("compacting");
    case "turn.parked":
    case "question.asked":
    case "approval.requested":
      return doing("waiting");
    case "approval.decided":
    case "turn.started":
      return turn.activity === "waiting" ? doing("thinking") : turn;
    case "tool.started": {
      if (turn.tools.has(event.callId)) return turn;
      const tools = new Map(turn.tools).set(event.callId, { tool: event.tool, sinceMs: nowMs });
      return { ...doing("thinking"), tools };
    }
    case "tool.finished":
    case "tool.denied":
      return turn.tools.has(event.callId)
        ? { ...turn, activity: "thinking", sinceMs: nowMs, tools: without(turn.tools, event.callId) }
        : turn;
    case "message":
      return afterMessage(turn, event.message, nowMs);
    default:
      return turn;
  }
}

/** Results end their calls also where the live events were lost. */
function afterMessage(turn: RunningTurn, message: Message, nowMs: number): RunningTurn {
  if (message.role !== "tool") return turn;
  const ended = new Set(message.parts.flatMap((part) => (part.type === "tool_result" ? [part.id] : [])));
  const tools = new Map([...turn.tools].filter(([callId]) => !ended.has(callId)));
  const isWaiting = turn.activity === "waiting";
  if (tools.size === turn.tools.size && !isWaiting) return turn;
  return { ...turn, tools, activity: "thinking", sinceMs: nowMs };
}
