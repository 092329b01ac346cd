// Omits the middle of a long text and states how much is missing. Pure.

const headShare = 0.7;
const tailShare = 0.2;

/**
 * The text, or 70 % of `maxChars` from its head and 20 % from its tail around a marker, which receives the number of omitted
 * characters. Never longer than `maxChars`, unless the marker alone is; surrogate pairs stay whole. `show` renders each part, given
 * its offset in the text; characters that it adds are not counted.
 */
export function excerpt(
  text: string,
  maxChars: number,
  marker: (missingChars: number) => string,
  show: (part: string, at: number) => string = (part) => part,
): string {
  if (text.length <= maxChars) return show(text, 0);
  // The marker uses the remaining 10 %, and more if that is not enough.
  const room = Math.max(0, Math.min(maxChars, (maxChars - marker(text.length).length - 4) / (headShare + tailShare)));
  const head = wholeHead(text, Math.floor(room * headShare));
  const tail = wholeTail(text, Math.floor(room * tailShare));
  const shown = [
    head === "" ? "" : show(head, 0),
    marker(text.length - head.length - tail.length),
    tail === "" ? "" : show(tail, text.length - tail.length),
  ];
  return shown.filter((part) => part !== "").join("\n\n");
}

/** The marker for a document: how much is omitted and the literal call that reads all of it. */
export function missingFrom(path: string, missing: number, total: number, canRead: boolean): string {
  const call = canRead ? ` Read all of it with read({"path":"${path}"}).` : "";
  return `[… ${missing} of ${total} characters of ${path} omitted.${call}]`;
}

function wholeHead(text: string, length: number): string {
  return text.slice(0, isHighSurrogate(text, length - 1) ? length - 1 : length);
}

function wholeTail(text: string, length: number): string {
  const from = text.length - length;
  return text.slice(length > 0 && isHighSurrogate(text, from - 1) ? from + 1 : from);
}

/** Whether a surrogate pair begins at this offset. */
function isHighSurrogate(text: string, at: number): boolean {
  const code = at < 0 ? 0 : text.charCodeAt(at);
  return code >= 0xd800 && code <= 0xdbff;
}
