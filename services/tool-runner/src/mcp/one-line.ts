// A server's own words as one line: they cannot end it, hide in it, or be longer than there is room for. Pure.

/** `max`: UTF-16 units. */
export function oneLine(text: string, max: number): string {
  const line = text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
  return line.length <= max ? line : `${line.slice(0, max - 1).toWellFormed()}…`;
}
