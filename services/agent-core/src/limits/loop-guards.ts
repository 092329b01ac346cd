// Detects loops in a turn, from its own messages only, so a restart changes nothing. Pure.
import { textOf, type Message, type Part } from "@parley/contracts";

/** First words of the loop's notes. Code recognises stored notes by them: do not change them. */
export const noteKinds = {
  nudge: "[Cut off: your last answer reached the length limit.",
  unspoken: "[Nothing was said:",
  empty: "[Your last answer was empty:",
  stopHook: "[A hook wants you to go on:",
  repeated: "[The same call again:",
  mismatch: "[Your answer does not match:",
} as const;
export type NoteKind = keyof typeof noteKinds;

export function noteText(kind: NoteKind, rest: string): string {
  return `${noteKinds[kind]} ${rest}]`;
}

export function note(kind: NoteKind, rest: string): Part[] {
  return [{ type: "text", text: noteText(kind, rest) }];
}

/** The kind of the loop's note in this message; undefined for every other message. */
function kindOf(message: Message): NoteKind | undefined {
  if (message.role !== "user" || message.from !== undefined) return undefined;
  const first = message.parts[0];
  if (first?.type !== "text") return undefined;
  const { text } = first;
  return (Object.keys(noteKinds) as NoteKind[]).find((kind) => text.startsWith(noteKinds[kind]));
}

export interface RoundHistory {
  /** Notes that made the turn continue, since the last tool call or the last message of a person. */
  withoutTools: number;
  /** Consecutive nudges. */
  nudges: number;
  /** A Stop hook has made this turn continue. */
  stopHookActive: boolean;
  /** The turn already got the reminder to send its answer. */
  reprompted: boolean;
  /** Consecutive empty answers that were requested again. */
  emptyAnswers: number;
  /** Answers since the last tool call that did not match the required JSON schema. */
  mismatches: number;
}

/** `messages`: of the running turn, in order. */
export function roundsOf(messages: readonly Message[]): RoundHistory {
  const rounds: RoundHistory = {
    withoutTools: 0,
    nudges: 0,
    stopHookActive: false,
    reprompted: false,
    emptyAnswers: 0,
    mismatches: 0,
  };
  for (const message of messages) {
    const kind = kindOf(message);
    if (kind !== undefined && kind !== "repeated") {
      rounds.withoutTools += 1;
      rounds.nudges = kind === "nudge" ? rounds.nudges + 1 : 0;
      rounds.emptyAnswers = kind === "empty" ? rounds.emptyAnswers + 1 : 0;
      if (kind === "mismatch") rounds.mismatches += 1;
      if (kind === "stopHook") rounds.stopHookActive = true;
      if (kind === "unspoken") rounds.reprompted = true;
    } else if (message.role === "tool" || message.from !== undefined) {
      rounds.withoutTools = 0;
      rounds.nudges = 0;
      rounds.emptyAnswers = 0;
      rounds.mismatches = 0;
    }
  }
  return rounds;
}

/**
 * Text since the last tool call in replies that were cut off or paused and that nobody received; the next reply
 * continues it. Answers that a Stop hook rejected, that do not match, or that were not sent to anyone, are excluded.
 */
export function unfinishedText(messages: readonly Message[]): string {
  let pieces: string[] = [];
  for (const message of messages) {
    const kind = kindOf(message);
    if (message.role === "tool" || kind === "stopHook" || kind === "unspoken" || kind === "mismatch") pieces = [];
    else if (message.role === "assistant") pieces.push(textOf(message.parts));
  }
  return pieces.filter((piece) => piece !== "").join("\n\n");
}

/** How many times in a row the turn's last call had the same arguments and the same result; 0 without calls. */
export function repeatedCalls(messages: readonly Message[]): number {
  const inputs = new Map<string, string>();
  const done: string[] = [];
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type === "tool_call") inputs.set(part.id, `${part.name} ${part.input}`);
      if (part.type === "tool_result") done.push(`${inputs.get(part.id) ?? ""}\n${part.content}`);
    }
  }
  const last = done.at(-1);
  if (last === undefined) return 0;
  const differs = done.findLastIndex((each) => each !== last);
  return done.length - 1 - differs;
}

/** Number of repetitions from which the model is warned. */
const warnAtRepeats = 3;

/**
 * The last call was repeated often enough for a warning, and there was none yet. Parallel calls may skip the exact
 * number.
 */
export function repeatWarningDue(messages: readonly Message[]): boolean {
  const times = repeatedCalls(messages);
  if (times < warnAtRepeats) return false;
  let results = 0;
  for (const message of messages.toReversed()) {
    if (kindOf(message) === "repeated") return false;
    results += message.parts.filter((part) => part.type === "tool_result").length;
    if (results >= times) return true;
  }
  return true;
}
