// Lines of a given width for the terminal. Pure.

import { truncateToWidth, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";

/** Tabs have no width of their own on a terminal that is drawn by columns. */
function spaced(text: string): string {
  return text.replaceAll("\t", "    ").replaceAll("\r", "");
}

/** The text in lines of at most `width` columns: after `first` on the first line, and as much space on the others. */
export function wrapped(text: string, width: number, first = ""): string[] {
  const indent = " ".repeat(visibleWidth(first));
  const room = Math.max(1, width - indent.length);
  const lines = spaced(text)
    .split("\n")
    .flatMap((line) => (line === "" ? [""] : wrapTextWithAnsi(line, room)));
  return lines.map((line, index) => (index === 0 ? `${first}${line}` : `${indent}${line}`));
}

/** The text on one line of at most `width` columns. */
export function cut(text: string, width: number): string {
  return truncateToWidth(spaced(text).replaceAll("\n", " "), Math.max(1, width), "…");
}

/**
 * The lines, or their beginning and end with a note of how many are left out. `head` and `tail`: numbers of lines that stay. A fold that
 * would save fewer than two lines is none.
 */
export function folded(
  lines: readonly string[],
  { head, tail }: { head: number; tail: number },
  note: (hidden: number) => string,
): string[] {
  const hidden = lines.length - head - tail;
  if (hidden < 2) return [...lines];
  return [...lines.slice(0, head), note(hidden), ...lines.slice(lines.length - tail)];
}

/** `3 s`, `1 min 5 s`. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
