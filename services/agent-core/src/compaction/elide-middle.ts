// Omits the middle of a long text and states how many characters are missing.

/** Characters reserved for the note that replaces the middle. */
export const clipNoteChars = 60;

/**
 * A text of at most `maxChars`. `headShare`: the share of the retained characters taken from the beginning. A surrogate pair that the
 * cut splits is replaced, since JSON cannot carry half of one.
 */
export function elideMiddle(text: string, maxChars: number, headShare = 0.7): string {
  if (text.length <= maxChars) return text;
  const kept = maxChars - clipNoteChars;
  if (kept <= 0) return text.slice(0, maxChars).toWellFormed();
  const head = Math.floor(kept * headShare);
  const tail = text.length - (kept - head);
  const missing = `\n[… ${text.length - kept} characters omitted …]\n`;
  return `${text.slice(0, head).toWellFormed()}${missing}${text.slice(tail).toWellFormed()}`;
}
