// Which document versions a session's model knows: those in its system prompt, and those from later notes in its log.
// The notes contain the versions, so they survive a restart; pure.
import { parseJsonObject } from "@parley/kit";
import { textOf, type Message } from "@parley/contracts";

type Versions = Record<string, number>;

const mark = "\n\n[documents known: ";

/** A note with the versions that the model knows after it. */
export function markKnown(note: string, versions: Versions): string {
  return `${note}${mark}${JSON.stringify(versions)}]`;
}

/** `prefixVersions`: the versions that the system prompt contains. */
export function knownVersions(prefixVersions: Versions, messages: readonly Message[]): Versions {
  for (const message of messages.toReversed()) {
    if (message.role !== "user" || message.from !== undefined) continue;
    const text = textOf(message.parts);
    const at = text.lastIndexOf(mark);
    if (at < 0) continue;
    const versions = parse(text.slice(at + mark.length, -1));
    if (versions !== undefined) return versions;
  }
  return prefixVersions;
}

export function sameVersions(a: Versions, b: Versions): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function parse(text: string): Versions | undefined {
  const parsed = parseJsonObject(text);
  if (parsed === undefined) return undefined;
  const entries = Object.entries(parsed).filter((entry): entry is [string, number] => typeof entry[1] === "number");
  return Object.fromEntries(entries);
}
