// Reduces a server's text to one line without control or format characters, with a length limit. Pure.

/** `max`: UTF-16 units. */
export function oneLine(text: string, max: number): string {
  const line = text.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
  return line.length <= max ? line : `${line.slice(0, max - 1).toWellFormed()}…`;
}
