// Paths of notes, and validation of paths in tool calls. Pure.
import { documentPathProblem, isMemoryPath } from "@parley/contracts";

export const noteCategories = ["core", "daily", "conversation"] as const;
export type NoteCategory = (typeof noteCategories)[number];

/** For the model: why this is not the path of a note; null if it is. */
export function notePathProblem(path: string): string | null {
  if (!isMemoryPath(path)) return `"${path.slice(0, 300)}" is not a note: use MEMORY.md or memory/….md.`;
  const problem = documentPathProblem(path);
  return problem === null ? null : `"${path.slice(0, 300)}": ${problem}.`;
}

/** `at`: the time of the entry; days are in UTC, as everywhere in memory. */
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

/** The first line of a new note. */
export function headingOf(path: string): string {
  if (path === "MEMORY.md") return "# Memory\n\n";
  const name = path.slice(path.lastIndexOf("/") + 1, -".md".length);
  return path.startsWith("memory/conversations/") ? `# Conversation ${name}\n\n` : `# ${name}\n\n`;
}

/** Formats a single line as a list item, with the time in daily notes; formatted text stays unchanged. */
export function formatEntry(content: string, path: string, at: Date): string {
  const text = content.trim();
  if (text.includes("\n") || /^(?:[-*#>|]|\d+\.)/.test(text)) return text;
  const dated = /^memory\/\d{4}-\d{2}-\d{2}\.md$/.test(path);
  return dated ? `- ${at.toISOString().slice(11, 16)} ${text}` : `- ${text}`;
}
