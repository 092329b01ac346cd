// Applies the display pieces of a turn to the transcript: text grows in its entry, and a tool call stays one entry. Pure.

import type { Piece } from "../chat/transcript.ts";
import { milliseconds, oneLine, stripControl } from "../tables/format.ts";
import { type ChatState, openQuestions, type ToolEntry } from "./state.ts";
import { append, closeQuestions, replaceAt } from "./updates.ts";

type ShownPiece = Exclude<Piece, { type: "said" }>;

const immediatelyMs = 50;
const maxReasonChars = 300;

export function applyPiece(shown: ChatState, turnId: string, piece: ShownPiece): ChatState {
  if (piece.type === "text" || piece.type === "thinking" || piece.type === "restart") {
    return grow(shown, turnId, piece);
  }
  // What follows another entry is a new paragraph.
  const growing = new Map(shown.growing);
  growing.delete(turnId);
  const state = piece.type === "tool_progress" || piece.type === "tool_result" ? shown : { ...shown, growing };
  switch (piece.type) {
    case "tool_started":
      return changeTool(state, piece, { input: piece.input, state: "running" });
    case "tool_progress":
      return changeTool(state, piece, { progress: stripControl(piece.text) });
    case "tool_finished":
      return closeQuestions(
        changeTool(state, piece, {
          ...(piece.input === "" ? {} : { input: piece.input }),
          state: piece.isError ? "failed" : "done",
          output: stripControl(piece.content),
          durationMs: piece.durationMs,
          isolation: piece.isolation,
          progress: "",
        }),
        ({ callId }) => callId === piece.callId,
      );
    case "tool_denied":
      return changeTool(state, piece, {
        ...(piece.input === "" ? {} : { input: piece.input }),
        state: "denied",
        output: stripControl(piece.reason),
        progress: "",
      });
    case "tool_result":
      return result(state, piece);
    case "retry": {
      const when = piece.delayMs < immediatelyMs ? "immediately" : `in ${milliseconds(piece.delayMs)}`;
      const text = `↻ ${oneLine(piece.reason, maxReasonChars)}; attempt ${piece.attempt} ${when}`;
      return append(state, { kind: "note", tone: "warning", text });
    }
    case "question": {
      const { approvalId, tool, summary, reason, expiresAt, input, mayAlways } = piece;
      const isKnown = state.entries.some((each) => each.kind === "approval" && each.approvalId === approvalId);
      if (isKnown) return state;
      return append(state, {
        kind: "approval",
        turnId,
        approvalId,
        tool,
        summary: stripControl(summary),
        reason: stripControl(reason),
        input,
        mayAlways,
        expiresAt,
        decision: null,
      });
    }
    case "answered": {
      const { approvalId, tool, allowed, by, message } = piece;
      const index = state.entries.findLastIndex((each) => each.kind === "approval" && each.approvalId === approvalId);
      const entry = state.entries[index];
      const decision = { allowed, by: oneLine(by, 60), message: stripControl(message) };
      if (entry?.kind === "approval") return replaceAt(state, index, { ...entry, decision });
      const why = decision.message === "" ? "" : `: ${decision.message}`;
      const text = `${tool} ${allowed ? "approved" : "denied"} by ${decision.by}${why}`;
      return append(state, { kind: "note", tone: "plain", text });
    }
    case "asked": {
      const { callId, options } = piece;
      const question = stripControl(piece.question);
      const isKnown = state.entries.some(
        (each) => each.kind === "question" && each.isOpen && each.callId === callId && each.question === question,
      );
      if (isKnown) return state;
      // The next question of a form: the one before has been answered, perhaps elsewhere.
      const before = closeQuestions(state, (each) => each.callId === callId);
      return append(before, { kind: "question", turnId, callId, question, options, isOpen: true });
    }
    case "parked":
      // An open question shows what it waits for.
      if (openQuestions(state).some((each) => each.turnId === turnId)) return state;
      return append(state, { kind: "note", tone: "plain", text: `waiting for ${stripControl(piece.waitingFor)}` });
    case "aside":
      return append(state, { kind: "note", tone: piece.tone, text: stripControl(piece.text) });
    case "notice":
      return append(state, { kind: "note", tone: "warning", text: stripControl(piece.text) });
    case "end":
      return state;
    default:
      return piece satisfies never;
  }
}

function grow(
  state: ChatState,
  turnId: string,
  piece: Extract<Piece, { type: "text" | "thinking" | "restart" }>,
): ChatState {
  const index = state.growing.get(turnId) ?? -1;
  const entry = state.entries[index];
  const isText = entry?.kind === "answer" || entry?.kind === "thinking";
  if (piece.type === "restart") return isText ? replaceAt(state, index, { ...entry, text: "" }) : state;
  const text = stripControl(piece.text);
  const kind = piece.type === "text" ? "answer" : "thinking";
  if (isText && entry.kind === kind) return replaceAt(state, index, { kind, text: entry.text + text });
  const begun = text.replace(/^\n+/, "");
  if (begun === "") return state;
  const growing = new Map(state.growing).set(turnId, state.entries.length);
  return append({ ...state, growing }, { kind, text: begun });
}

/** Changes the entry of a call, or adds it. */
function changeTool(
  state: ChatState,
  { callId, tool }: { callId: string; tool: string },
  change: Partial<ToolEntry>,
): ChatState {
  const index = state.calls.get(callId) ?? -1;
  const entry = state.entries[index];
  if (entry?.kind === "tool" && entry.callId === callId) return replaceAt(state, index, { ...entry, ...change });
  const added: ToolEntry = {
    kind: "tool",
    callId,
    tool,
    input: "",
    state: "running",
    durationMs: null,
    output: "",
    progress: "",
    isolation: null,
    ...change,
  };
  return append({ ...state, calls: new Map(state.calls).set(callId, state.entries.length) }, added);
}

/** The complete text replaces the truncated one; a denial stays one. */
function result(state: ChatState, { callId, content, isDenied }: Extract<Piece, { type: "tool_result" }>): ChatState {
  const index = state.calls.get(callId) ?? -1;
  const entry = state.entries[index];
  if (entry?.kind !== "tool" || entry.callId !== callId) return state;
  const isRefused = isDenied || entry.state === "denied";
  const output = stripControl(content);
  return replaceAt(state, index, { ...entry, output, ...(isRefused ? { state: "denied" as const } : {}) });
}
