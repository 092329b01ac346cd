// Small changes of the state of the terminal chat. Pure.

import type { ChatState, Entry, QuestionEntry } from "./state.ts";

export function append(state: ChatState, entry: Entry): ChatState {
  return { ...state, entries: [...state.entries, entry] };
}

export function replaceAt(state: ChatState, index: number, entry: Entry): ChatState {
  return { ...state, entries: state.entries.with(index, entry) };
}

/** Shows a waiting message of ours in the transcript: a turn has taken it. */
export function takeMessage(state: ChatState, id: string, turnId: string): ChatState {
  const message = state.waiting.find((each) => each.id === id);
  if (message === undefined) return state;
  const { text, files } = message;
  const shown = append(state, { kind: "said", text, by: "you", files });
  return {
    ...shown,
    waiting: state.waiting.filter((each) => each.id !== id),
    taken: [...state.taken, { turnId, text }],
  };
}

/** Closes the open questions of the agent that match. */
export function closeQuestions(state: ChatState, matches: (entry: QuestionEntry) => boolean): ChatState {
  return mapEntries(state, (entry) =>
    entry.kind === "question" && entry.isOpen && matches(entry) ? { ...entry, isOpen: false } : entry,
  );
}

/** Closes the questions and approvals of an ended turn. */
export function closeTurn(state: ChatState, turnId: string): ChatState {
  return mapEntries(state, (entry) => {
    if (entry.kind === "question" && entry.isOpen && entry.turnId === turnId) return { ...entry, isOpen: false };
    if (entry.kind === "approval" && entry.decision === null && entry.turnId === turnId)
      return { ...entry, decision: { allowed: false, by: "the end of the turn", message: "" } };
    return entry;
  });
}

function mapEntries(state: ChatState, change: (entry: Entry) => Entry): ChatState {
  const entries = state.entries.map(change);
  return entries.some((entry, index) => entry !== state.entries[index]) ? { ...state, entries } : state;
}
