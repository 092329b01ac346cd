// Text formatting for people: tables, durations, and untrusted text made safe to print. Pure.

import { stripVTControlCharacters } from "node:util";

import { oneLine as cut, parseJson } from "@parley/kit";
import stringWidth from "string-width";

import type { Paint } from "../io/io.ts";

/** Between columns, and before the further lines of a row. */
const gap = 2;

/**
 * Aligns rows, with two spaces between columns. Cells may contain colours. `maxWidth`: columns of the terminal; where a row is wider,
 * its last columns go on indented lines below it, so that nothing is cut off. A cell wider than the terminal stays as it is.
 */
export function table(rows: readonly (readonly string[])[], maxWidth = Infinity): string {
  const widths: number[] = [];
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, columnsOf(cell))));
  const groups = groupColumns(widths, maxWidth);
  return rows
    .flatMap((row) =>
      groups.map(({ from, to }, index) => {
        const cells = row
          .slice(from, to)
          .map((cell, at) => cell + " ".repeat((widths[from + at] ?? 0) - columnsOf(cell)));
        return `${index === 0 ? "" : " ".repeat(gap)}${cells.join(" ".repeat(gap))}`.trimEnd();
      }),
    )
    .join("\n");
}

/** The text after its label, over as many lines as it needs, indented like the first. `maxWidth`: columns, of which the last stays free. */
export function indented(label: string, text: string, maxWidth: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1) ?? ""} ${word}`.trimStart();
    if (lines.length > 0 && label.length + columnsOf(longer) < maxWidth) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.map((line, at) => (at === 0 ? label : " ".repeat(label.length)) + line);
}

/** Which columns share a line: the first line has the full width, the others are indented. */
function groupColumns(widths: readonly number[], maxWidth: number): { from: number; to: number }[] {
  const groups = [{ from: 0, to: 0 }];
  let used = -gap;
  widths.forEach((width, at) => {
    const group = groups.at(-1);
    if (group !== undefined && (group.to === group.from || used + gap + width <= maxWidth)) {
      group.to = at + 1;
      used += gap + width;
    } else {
      groups.push({ from: at, to: at + 1 });
      used = gap + width;
    }
  });
  return groups;
}

/** A table with a dimmed head: the name of each column, and its cell for a row. `maxWidth`: as for `table`. */
export function listing<R>(
  rows: readonly R[],
  columns: Readonly<Record<string, (row: R) => string | number>>,
  paint: Paint,
  maxWidth = Infinity,
): string {
  const head = Object.keys(columns).map((name) => paint("dim", name));
  return table([head, ...rows.map((row) => Object.values(columns).map((cell) => String(cell(row))))], maxWidth);
}

/** The columns that a terminal uses for a text: wide characters count as two, colours and combining marks as none. */
export function columnsOf(text: string): number {
  return stringWidth(stripVTControlCharacters(text));
}

/** `45s`, `12m`, `3h 20m`, `4d 2h`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 === 0 ? `${hours}h` : `${hours}h ${minutes % 60}m`;
  return hours % 24 === 0 ? `${Math.floor(hours / 24)}d` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** `2026-11-21 22:14:05` in the local time zone; the text itself if it is no time. */
export function localTime(iso: string): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return iso;
  const day = [date.getFullYear(), twoDigits(date.getMonth() + 1), twoDigits(date.getDate())].join("-");
  return `${day} ${timeOfDay(date)}:${twoDigits(date.getSeconds())}`;
}

/** `22:14`, in the local time zone. */
export function timeOfDay(date: Date): string {
  return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}

/** `34 ms`, `1.2 s`, `3 min`. */
export function milliseconds(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

/** One line of at most `width` characters, without terminal control sequences. */
export function oneLine(text: string, width: number): string {
  return cut(stripControl(text), width);
}

// oxlint-disable-next-line no-control-regex
const controls = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g;

/** Removes terminal control sequences from untrusted text; tabs and line feeds stay. */
export function stripControl(text: string): string {
  return stripVTControlCharacters(text).replace(controls, "");
}

// Control characters, characters without a width, and direction marks.
const invisibleCharacters = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{E0100}-\u{E01EF}]/gu;

/** Replaces characters that a terminal would hide or interpret with their numbers (`<U+200B>`), so that a person can review the line. Tabs stay. */
export function escapeInvisible(line: string): string {
  return line.replace(invisibleCharacters, (character) => {
    if (character === "\t") return character;
    return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

/** The arguments of a tool call, shorter than JSON: a single argument is shown as its value. */
export function summarizeInput(input: string): string {
  const value = parseJson(input);
  if (typeof value !== "object" || value === null) return input;
  const entries = Object.entries(value);
  const [only] = entries;
  if (entries.length === 1 && only !== undefined && typeof only[1] === "string") return only[1];
  return entries.map(([key, each]) => `${key}=${typeof each === "string" ? each : JSON.stringify(each)}`).join(" ");
}
