// Which versions of the documents a session's model knows of: those its system prompt was made from, and those that notes in its
// log have brought since. The notes say it themselves, so a restart knows as much; pure.
import { textOf, type Message } from "@parley/contracts";

type Versions = Record<string, number>;

const mark = "\n\n[documents known: ";

/** A note with what the model knows after it. */
export function markTold(note: string, told: Versions): string {
  return `${note}${mark}${JSON.stringify(told)}]`;
}

/** `fixed`: of the prefix. */
export function toldOf(fixed: Versions, messages: readonly Message[]): Versions {
  for (const message of messages.toReversed()) {
    if (message.role !== "user" || message.from !== undefined) continue;
    const text = textOf(message.parts);
    const at = text.lastIndexOf(mark);
    if (at < 0) continue;
    const versions = parse(text.slice(at + mark.length, -1));
    if (versions !== undefined) return versions;
  }
  return fixed;
}

export function sameVersions(a: Versions, b: Versions): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function parse(text: string): Versions | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null) return undefined;
    const entries = Object.entries(parsed).filter((entry): entry is [string, number] => typeof entry[1] === "number");
    return Object.fromEntries(entries);
  } catch {
    return undefined;
  }
}
