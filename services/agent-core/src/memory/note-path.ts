// Names of notes, and the names under which a call may mean one. Pure.
import { documentPathProblem, isMemoryPath } from "@parley/contracts";

export const noteCategories = ["core", "daily", "conversation"] as const;
export type NoteCategory = (typeof noteCategories)[number];

/** Why this is no note, in a sentence for the model; null when it is one. */
export function notePathProblem(path: string): string | null {
  if (!isMemoryPath(path)) return `"${path.slice(0, 300)}" is no note: there are MEMORY.md and memory/….md.`;
  const problem = documentPathProblem(path);
  return problem === null ? null : `"${path.slice(0, 300)}": ${problem}.`;
}

/** `at`: the moment of writing; days are those of UTC, as everywhere in memory. */
export function notePath(category: NoteCategory, sessionId: string, at: Date): string {
  switch (category) {
    case "core":
      return "MEMORY.md";
    case "daily":
      return `memory/${at.toISOString().slice(0, 10)}.md`;
    case "conversation":
      return `memory/conversations/${sessionId}.md`;
    default:
      return category satisfies never;
  }
}

/** What stands first in a note that is new. */
export function headingOf(path: string): string {
  if (path === "MEMORY.md") return "# Memory\n\n";
  const name = path.slice(path.lastIndexOf("/") + 1, -".md".length);
  return path.startsWith("memory/conversations/") ? `# Conversation ${name}\n\n` : `# ${name}\n\n`;
}

/** One line becomes an item of a list, in a note of a day with its time; what is laid out already stays as it is. */
export function entryOf(content: string, path: string, at: Date): string {
  const text = content.trim();
  if (text.includes("\n") || /^(?:[-*#>|]|\d+\.)/.test(text)) return text;
  const dated = /^memory\/\d{4}-\d{2}-\d{2}\.md$/.test(path);
  return dated ? `- ${at.toISOString().slice(11, 16)} ${text}` : `- ${text}`;
}
