// Shortens a text in its middle, saying how much is missing.

/** Room for what stands where the middle was, in characters. */
export const clipNoteChars = 60;

/**
 * A text of at most `maxChars`. `headShare` is the beginning's part of what stays. A surrogate pair that the cut halves is
 * replaced: JSON on the wire would not carry it.
 */
export function clip(text: string, maxChars: number, headShare = 0.7): string {
  if (text.length <= maxChars) return text;
  const kept = maxChars - clipNoteChars;
  if (kept <= 0) return text.slice(0, maxChars).toWellFormed();
  const head = Math.floor(kept * headShare);
  const tail = text.length - (kept - head);
  const missing = `\n[… ${text.length - kept} characters are left out here …]\n`;
  return `${text.slice(0, head).toWellFormed()}${missing}${text.slice(tail).toWellFormed()}`;
}
