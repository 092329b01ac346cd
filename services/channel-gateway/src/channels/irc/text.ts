// Converts an answer to IRC lines: plain text, with a byte limit per line and a line limit. Pure.
import { richTextOf, type RichText } from "../text/rich-text.ts";

/** Limits the length of an answer, because IRC clients show every line separately. */
export const maxLines = 12;

/** Converts Markdown to lines of at most `limitBytes` of UTF-8; the first line begins with `prefix`. */
export function toLines(markdown: string, prefix: string, limitBytes: number): string[] {
  const plain = plainOf(richTextOf(markdown));
  if (plain.trim() === "") return [];
  const lines = `${prefix}${plain}`
    .split("\n")
    .map((line) => line.replaceAll("\t", "    ").trimEnd())
    .filter((line) => line !== "")
    .flatMap((line) => splitBytes(line, limitBytes));
  const more = lines.length - maxLines;
  return more <= 0 ? lines : [...lines.slice(0, maxLines), `… (${more} more ${more === 1 ? "line" : "lines"})`];
}

/** The plain text, in which the URL of a link follows its label. */
function plainOf({ text, ranges }: RichText): string {
  let plain = "";
  let at = 0;
  const links = ranges.flatMap((range) => (range.type === "link" ? [range] : []));
  for (const { start, end, url } of links.toSorted((left, right) => left.end - right.end)) {
    plain += text.slice(at, end);
    at = end;
    const label = text.slice(start, end);
    if (label !== url && `mailto:${label}` !== url && !/^https?:\/\/$/.test(url.replace(label, "")))
      plain += ` (${url})`;
  }
  return plain + text.slice(at);
}

/** Splits a line into pieces of at most `limitBytes`, preferably between words and never inside a character. */
export function splitBytes(line: string, limitBytes: number): string[] {
  const pieces: string[] = [];
  let rest = line;
  while (Buffer.byteLength(rest) > limitBytes) {
    let bytes = 0;
    let end = 0;
    for (const character of rest) {
      bytes += Buffer.byteLength(character);
      if (bytes > limitBytes) break;
      end += character.length;
    }
    const space = rest.lastIndexOf(" ", end);
    const cut = space > end / 2 ? space : end;
    pieces.push(rest.slice(0, cut).trimEnd());
    rest = rest.slice(cut).trimStart();
  }
  pieces.push(rest);
  return pieces.filter((piece) => piece !== "");
}
