// Cuts a long text in the middle and says what is missing. Pure.

const headShare = 0.7;
const tailShare = 0.2;

/**
 * The text, or 70 % of `maxChars` from its head and 20 % from its tail around a marker that gets the number of characters that
 * are missing. Never longer than `maxChars`, unless the marker alone is; no character is cut in half. `show` makes of each part what
 * is shown of it, by the place in the text where it begins; what that adds is not counted.
 */
export function cutText(
  text: string,
  maxChars: number,
  marker: (missingChars: number) => string,
  show: (part: string, at: number) => string = (part) => part,
): string {
  if (text.length <= maxChars) return show(text, 0);
  // The marker takes what the shares leave, and more where that is too little for it.
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

/** The marker for a document: how much is missing and the literal call that shows it. */
export function missingFrom(path: string, missing: number, total: number, canRead: boolean): string {
  const call = canRead ? ` Read the whole with read({"path":"${path}"}).` : "";
  return `[… ${missing} of ${total} characters of ${path} are not shown here.${call}]`;
}

function wholeHead(text: string, length: number): string {
  return text.slice(0, isHighSurrogate(text, length - 1) ? length - 1 : length);
}

function wholeTail(text: string, length: number): string {
  const from = text.length - length;
  return text.slice(length > 0 && isHighSurrogate(text, from - 1) ? from + 1 : from);
}

/** Whether the pair at this place goes on at the next. */
function isHighSurrogate(text: string, at: number): boolean {
  const code = at < 0 ? 0 : text.charCodeAt(at);
  return code >= 0xd800 && code <= 0xdbff;
}
