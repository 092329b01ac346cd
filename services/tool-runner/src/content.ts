// The last look at a result's text before it is stored: it fits, and every store and every model can take it.
// It does not know which tool wrote it; a tool keeps its own limits far below this one.

/** Characters a result may have; above it something went wrong in a tool. */
export const maxContentCharacters = 60_000;

/** PostgreSQL text has no NUL, and lone surrogates are not text anywhere. */
export function cleanContent(content: string): string {
  const clean = content.toWellFormed().replaceAll("\u0000", "\u2400");
  if (clean === "") return "(no output)";
  if (clean.length <= maxContentCharacters) return clean;
  const kept = clean.slice(0, maxContentCharacters - 100).toWellFormed();
  return `${kept}\n[cut: ${clean.length - kept.length} of ${clean.length} characters are missing]`;
}
