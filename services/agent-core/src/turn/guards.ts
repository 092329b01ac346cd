// What keeps a turn from going round in circles, read from the turn's own messages: a restart changes nothing about it. Pure.
import { textOf, type Message, type Part } from "@parley/contracts";

/** Said behind an answer by the loop itself; recognised again by these first words. */
export const noteKinds = {
  nudge: "[Cut off: your last answer reached the length limit.",
  unspoken: "[Nothing was said:",
  stopHook: "[A hook wants you to go on:",
  repeated: "[The same call again:",
} as const;
export type NoteKind = keyof typeof noteKinds;

export function noteText(kind: NoteKind, rest: string): string {
  return `${noteKinds[kind]} ${rest}]`;
}

export function note(kind: NoteKind, rest: string): Part[] {
  return [{ type: "text", text: noteText(kind, rest) }];
}

/** Which note of the loop a message is; undefined for every other message. */
function kindOf(message: Message): NoteKind | undefined {
  if (message.role !== "user" || message.from !== undefined) return undefined;
  const first = message.parts[0];
  if (first?.type !== "text") return undefined;
  const { text } = first;
  return (Object.keys(noteKinds) as NoteKind[]).find((kind) => text.startsWith(noteKinds[kind]));
}

export interface Rounds {
  /** Notes that made the turn go on, since the last tool call or the last word of a person. */
  withoutTools: number;
  /** Nudges in a row. */
  nudges: number;
  /** A Stop hook has made this turn go on. */
  stopHookActive: boolean;
  /** The turn was asked to say something already. */
  reprompted: boolean;
}

/** `messages`: of the running turn, in order. */
export function roundsOf(messages: readonly Message[]): Rounds {
  const rounds: Rounds = { withoutTools: 0, nudges: 0, stopHookActive: false, reprompted: false };
  for (const message of messages) {
    const kind = kindOf(message);
    if (kind !== undefined && kind !== "repeated") {
      rounds.withoutTools += 1;
      rounds.nudges = kind === "nudge" ? rounds.nudges + 1 : 0;
      if (kind === "stopHook") rounds.stopHookActive = true;
      if (kind === "unspoken") rounds.reprompted = true;
    } else if (message.role === "tool" || message.from !== undefined) {
      rounds.withoutTools = 0;
      rounds.nudges = 0;
    }
  }
  return rounds;
}

/**
 * What the turn has written since its last tool call in answers that were cut off or paused, and has not told anybody: the next
 * reply goes on from there. An answer that a hook has sent back, or that nobody was to hear, is not part of it.
 */
export function unfinishedText(messages: readonly Message[]): string {
  let pieces: string[] = [];
  for (const message of messages) {
    const kind = kindOf(message);
    if (message.role === "tool" || kind === "stopHook" || kind === "unspoken") pieces = [];
    else if (message.role === "assistant") pieces.push(textOf(message.parts));
  }
  return pieces.filter((piece) => piece !== "").join("\n\n");
}

/** How often the last call of the turn came in a row with the same arguments and the same result. 0 without calls. */
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

/** From how many repetitions on the model is told. Source: the plan's notes on loop detection. */
const warnAtRepeats = 3;

/** The last call was repeated so often that the model is to be told, and it was not yet. Calls side by side may jump over the number. */
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
