// Parses the model's answer to a consolidation request: an edit with its sources, or the problem. Pure.
import { parseJson } from "@parley/kit";
import type { InputOf, store } from "@parley/contracts";
import type { ModelReply } from "../model/provider.ts";
import { isConversation, MemoryUpdate, updateTool, type Material } from "./consolidation-request.ts";
import { citationOf } from "./format-hits.ts";

type Edit = Extract<InputOf<typeof store.memoryConsolidate>["outcome"], { kind: "edit" }>;

/** Maximum number of citations per line. */
const maxCitations = 4;
/** The citations at the end of a line that an earlier consolidation wrote. */
const citations = /\s*\(((?:(?:memory\/|sessions\/)[^()]*?)(?:; (?:memory\/|sessions\/)[^()]*?)*)\)$/;

export function parseUpdate(reply: ModelReply, material: Material, maxChars: number): Edit | { problem: string } {
  if (reply.stopReason === "max_tokens") return { problem: "the answer was truncated" };
  const calls = reply.parts.filter((part) => part.type === "tool_call");
  const [call] = calls;
  if (call === undefined || calls.length > 1 || call.name !== updateTool)
    return { problem: `the model did not answer with one call of ${updateTool}` };
  const update = MemoryUpdate.safeParse(parseJson(call.input));
  if (!update.success) return { problem: `invalid arguments: ${update.error.issues[0]?.message ?? ""}` };
  const add: Edit["add"] = [];
  for (const { after, text, sources } of update.data.add) {
    const line = text.replaceAll(/\s*[\r\n\0]+\s*/g, " ").toWellFormed();
    if (/^#{1,6}\s/.test(line)) {
      add.push({ after, text: line });
      continue;
    }
    if (sources.length === 0) return { problem: `a line has no source: ${line.slice(0, 100)}` };
    const places: string[] = [];
    for (const source of sources) {
      const cited = placesOf(source, material);
      if (cited === undefined) return { problem: `the request does not contain the source ${source.slice(0, 100)}` };
      places.push(...cited);
    }
    const bare = line.replace(citations, "");
    const named = [...new Set(places)].slice(0, maxCitations);
    add.push({ after, text: named.length === 0 ? bare : `${bare} (${named.join("; ")})` });
  }
  const { remove } = update.data;
  const { progress, memory } = material;
  return { kind: "edit", expectedVersion: memory.version, remove, add, maxChars, progress };
}

/** The citations of a source; undefined if the request did not contain it. Lines of MEMORY.md pass on their own citations. */
function placesOf(source: string, { memory, sources }: Material): string[] | undefined {
  const [, of = "", first = "", second] = /^([MN]\d*):(\d+)(?:-(\d+))?$/.exec(source.trim()) ?? [];
  const from = Number(first);
  const to = second === undefined ? from : Number(second);
  if (of === "M") {
    const lines = memory.lines.slice(from - 1, to);
    if (from < 1 || to < from || lines.length < to - from + 1 || lines.some(({ text }) => text === null))
      return undefined;
    return lines.flatMap(({ text }) => citations.exec(text ?? "")?.[1]?.split("; ") ?? []);
  }
  const named = sources[Number(of.slice(1)) - 1];
  const seen = named?.lines.filter(({ number }) => number >= from && number <= to) ?? [];
  const begin = seen[0]?.number;
  const end = seen.at(-1)?.number;
  // A range may include lines that were not new, but its first and last line must have been in the request.
  if (named === undefined || begin !== from || end !== to) return undefined;
  return [citationOf({ path: named.place, seq: isConversation(named.place) ? begin : null }, begin, end)];
}
