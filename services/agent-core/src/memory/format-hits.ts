// Formats memory for the model: each passage with its source, and a warning before untrusted content. Pure.
import { markUntrusted, untrustedMarker, type MemoryHit, type OutputOf, type store } from "@parley/contracts";
import { snippetOf } from "./snippet.ts";

const snippetChars = 700;

/** `path#L3-L8` for notes, `sessions/<id> message 12` for messages. */
export function citationOf(hit: Pick<MemoryHit, "path" | "seq">, fromLine: number, toLine: number): string {
  if (hit.seq !== null) return `${hit.path} message ${hit.seq}`;
  return `${hit.path}#L${fromLine}${toLine === fromLine ? "" : `-L${toLine}`}`;
}

/** One passage, with its source and as a quotation. */
function showHit(hit: MemoryHit, query: string, withScore: boolean): string {
  const { text, fromLine, toLine } = snippetOf(hit.text, hit.fromLine, query, snippetChars);
  const facts = [
    citationOf(hit, fromLine, toLine),
    ...(hit.date === null ? [] : [hit.date]),
    ...(hit.source === "document" ? [] : [hit.speaker ?? (hit.author === "agent" ? "you" : "a person")]),
    ...(withScore ? [`score ${hit.score.toFixed(2)}`] : []),
  ];
  const quoted = text
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");
  return `${facts.join(" · ")}\n${hit.author === "untrusted" ? `${untrustedMarker}\n` : ""}${quoted}`;
}

export function formatHits(hits: readonly MemoryHit[], query: string): string {
  const shown = hits.map((hit, index) => `${index + 1}. ${showHit(hit, query, true)}`);
  const more = "Cite the source of each passage you use. memory_get reads more of a note.";
  return [`${hits.length} passages found, best first:`, ...shown, more].join("\n\n");
}

/** First line of the note that is appended to a person's message. */
const recallHeading = "[Memory: passages that may be relevant, found automatically]";

export function recallNote(hits: readonly MemoryHit[], query: string): string {
  return [recallHeading, ...hits.map((hit) => showHit(hit, query, false))].join("\n\n");
}

type Lines = Extract<OutputOf<typeof store.memoryGet>, { status: "found" }>;

/** Numbered lines, with a warning before each run of untrusted ones. */
export function formatLines({ path, from, lines, total }: Lines): string {
  const shown = markUntrusted(
    lines.map(({ text, author }, index) => ({
      shown: `${String(from + index).padStart(6)}\t${text}`,
      untrusted: text.trim() === "" ? null : author === "untrusted",
    })),
  );
  const last = from + lines.length - 1;
  const head = `${path}, lines ${from} to ${last} of ${total}`;
  return last < total
    ? `${head}; continue with from=${last + 1}:\n${shown.join("\n")}`
    : `${head}:\n${shown.join("\n")}`;
}
