// Final limits on a result's text before it is stored, so that it fits the bus, the store and every model. It does not depend on the tool;
// a tool's own limits are far lower.

/** Maximum encoded JSON bytes of all results of one step, because they share one message. */
const stepResultsBytes = 240 * 1024;

/** Maximum encoded JSON bytes of one result when `count` results share a message. */
export function maxResultBytesFor(count: number): number {
  return Math.max(1_000, Math.floor(stepResultsBytes / Math.max(1, count)));
}

/** Maximum characters of a result; a tool should stay far below it. */
export const maxContentCharacters = 60_000;

/** `maxCharacters`: of the content, without the notice of a cut. `tool`: the notice names it. */
interface ContentLimit {
  maxCharacters?: number | undefined;
  tool?: string | undefined;
}

/** Space for the notice of a cut, in characters. */
const noticeCharacters = 200;

/**
 * Removes characters that PostgreSQL or JSON cannot represent (NUL, lone surrogates) and elides the middle above `maxCharacters`
 * (UTF-16 units; default and maximum about 60,000) or above `maxJsonBytes` as a JSON string.
 */
export function truncateContent(
  content: string,
  maxJsonBytes: number,
  { maxCharacters = Infinity, tool }: ContentLimit = {},
): string {
  const clean = content.toWellFormed().replaceAll("\u0000", "\u2400");
  if (clean === "") return "(no output)";
  if (clean.length <= Math.min(maxContentCharacters, maxCharacters) && jsonBytes(clean) <= maxJsonBytes) return clean;
  let keep = Math.min(clean.length, maxContentCharacters - noticeCharacters, maxCharacters);
  for (;;) {
    const cut = cutMiddle(clean, keep, tool);
    const bytes = jsonBytes(cut);
    if (bytes <= maxJsonBytes || keep === 0) return cut;
    keep = Math.floor(keep * Math.min(0.95, maxJsonBytes / bytes));
  }
}

/** Keeps three quarters of `keep` from the beginning, where most answers are, and the rest from the end. */
function cutMiddle(text: string, keep: number, tool: string | undefined): string {
  const head = wholeCharacters(text.slice(0, Math.ceil(keep * 0.75)));
  const tail = wholeCharacters(keep === 0 ? "" : text.slice(text.length - Math.floor(keep * 0.25)));
  const shown = head.length + tail.length;
  const notice =
    tool === undefined
      ? `cut: ${text.length - shown} of ${text.length} characters are missing here`
      : `Showing ${shown} of ${text.length} characters from ${tool}; the others are missing here`;
  return `${head}\n[${notice}]\n${tail}`;
}

/** Removes incomplete surrogate pairs at both ends. */
function wholeCharacters(text: string): string {
  return text.replace(/^[\uDC00-\uDFFF]/, "").replace(/[\uD800-\uDBFF]$/, "");
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}
