// The last look at a result's text before it is stored: it fits the bus, and every store and every model can take it.
// It does not know who wrote it; a tool keeps its own limits far below this one.

/** What all results of one step may weigh together, as encoded JSON: they travel in one message. */
const stepResultsBytes = 240 * 1024;

/** What one result may weigh, as encoded JSON, when `count` of them travel together. */
export function maxResultBytesFor(count: number): number {
  return Math.max(1_000, Math.floor(stepResultsBytes / Math.max(1, count)));
}

/** Characters a result may have; above it something went wrong in a tool. */
export const maxContentCharacters = 60_000;

/**
 * The text without what PostgreSQL or JSON cannot carry (NUL, lone surrogates), cut in the middle where it has more than
 * 60,000 characters or more than `maxJsonBytes` as a JSON string.
 */
export function fitContent(content: string, maxJsonBytes: number): string {
  const clean = content.toWellFormed().replaceAll("\u0000", "\u2400");
  if (clean === "") return "(no output)";
  if (clean.length <= maxContentCharacters && jsonBytes(clean) <= maxJsonBytes) return clean;
  let keep = Math.min(clean.length, maxContentCharacters - 200);
  for (;;) {
    const cut = cutMiddle(clean, keep);
    const bytes = jsonBytes(cut);
    if (bytes <= maxJsonBytes || keep === 0) return cut;
    keep = Math.floor(keep * Math.min(0.95, maxJsonBytes / bytes));
  }
}

/** Keeps three quarters of `keep` at the beginning, where most answers are, and the rest at the end. */
function cutMiddle(text: string, keep: number): string {
  const head = wholeCharacters(text.slice(0, Math.ceil(keep * 0.75)));
  const tail = wholeCharacters(keep === 0 ? "" : text.slice(text.length - Math.floor(keep * 0.25)));
  const missing = text.length - head.length - tail.length;
  return `${head}\n[cut: ${missing} of ${text.length} characters are missing here]\n${tail}`;
}

/** Without the half of a character that a cut may have left at an end. */
function wholeCharacters(text: string): string {
  return text.replace(/^[\uDC00-\uDFFF]/, "").replace(/[\uD800-\uDBFF]$/, "");
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text));
}
