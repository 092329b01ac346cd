// Texts of limited length. Lengths are in UTF-16 units, as in `String.length`.

/** The text on one line: control and format characters and white space become single spaces. Longer than `maxChars`: cut, with `…` at the end. */
export function oneLine(text: string, maxChars = Infinity): string {
  const line = text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
  return line.length <= maxChars
    ? line
    : `${line
        .slice(0, Math.max(0, maxChars - 1))
        .toWellFormed()
        .trimEnd()}…`;
}

/** Characters reserved for the note that replaces the middle. */
export const elisionNoteChars = 60;

/**
 * A text of at most `maxChars`, without its middle and with a note of how many characters are missing. `headShare`: the share of the
 * retained characters taken from the beginning. Half of a surrogate pair that the cut splits is replaced, since JSON cannot carry it.
 */
export function elideMiddle(text: string, maxChars: number, headShare = 0.7): string {
  if (text.length <= maxChars) return text;
  const kept = maxChars - elisionNoteChars;
  if (kept <= 0) return text.slice(0, maxChars).toWellFormed();
  const head = Math.floor(kept * headShare);
  const tail = text.length - (kept - head);
  const missing = `\n[… ${text.length - kept} characters omitted …]\n`;
  return `${text.slice(0, head).toWellFormed()}${missing}${text.slice(tail).toWellFormed()}`;
}

/** `1 message`, `2 messages`. */
export function pluralize(value: number, one: string, many = `${one}s`): string {
  return `${value} ${value === 1 ? one : many}`;
}
