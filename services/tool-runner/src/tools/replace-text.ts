// Decides what an edit makes of a text. Pure.

export type Replacement =
  | { status: "replaced"; text: string; count: number; line: number }
  | { status: "missing" }
  | { status: "ambiguous"; lines: number[] };

/**
 * Replaces `oldText`, which must stand in the text exactly once unless `all`. A text with CRLF line ends matches what is
 * written with LF, and keeps its line ends.
 */
export function replaceText(text: string, oldText: string, newText: string, all: boolean): Replacement {
  const direct = replaceExact(text, oldText, newText, all);
  if (direct.status !== "missing" || !text.includes("\r\n")) return direct;
  return replaceExact(text, toCrLf(oldText), toCrLf(newText), all);
}

function replaceExact(text: string, oldText: string, newText: string, all: boolean): Replacement {
  const starts: number[] = [];
  // Places that overlap are as ambiguous as others; replacing all of them goes from left to right.
  const step = all ? oldText.length : 1;
  for (let at = text.indexOf(oldText); at >= 0; at = text.indexOf(oldText, at + step)) starts.push(at);
  const [first] = starts;
  if (first === undefined) return { status: "missing" };
  if (starts.length > 1 && !all) return { status: "ambiguous", lines: starts.map((at) => lineAt(text, at)) };
  return {
    status: "replaced",
    text: text.split(oldText).join(newText),
    count: starts.length,
    line: lineAt(text, first),
  };
}

function toCrLf(text: string): string {
  return text.replaceAll(/\r?\n/g, "\r\n");
}

function lineAt(text: string, position: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < position; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}
