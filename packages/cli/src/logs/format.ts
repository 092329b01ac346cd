// Formats log records for people and programs. Pure.

import type { Format, Paint } from "../io/io.ts";
import type { Level, LogRecord } from "./records.ts";
import { stripControl } from "../tables/format.ts";

const levelFormats: Record<Level, Format> = {
  trace: "dim",
  debug: "dim",
  info: "green",
  warn: "yellow",
  error: "red",
  fatal: ["red", "bold"],
};
const sourceFormats: readonly Format[] = ["cyan", "magenta", "blue", "yellow", "green"];

/** `21:44:01.123 store-1 info  message key=value`; a stack follows on separate lines. */
export function recordText(record: LogRecord, paint: Paint): string {
  const { err, ...rest } = record.fields;
  const fields = Object.entries(rest).map(([key, value]) => paint("dim", `${key}=${shown(value)}`));
  const error = errorOf(err);
  const head = [
    paint("dim", clock(record.time)),
    paint(formatOf(record.source), record.source.padEnd(17)),
    paint(levelFormats[record.level], record.level.padEnd(5)),
    stripControl(record.message),
    ...(error === null ? [] : [paint("red", stripControl(error.message))]),
    ...fields,
  ];
  const line = head.filter((part) => part !== "").join(" ");
  return error?.stack === undefined ? line : `${line}\n${paint("dim", indent(stripControl(error.stack)))}`;
}

/** One line of JSON with the same keys for every log. */
export function recordJson({ time, level, service, source, message, fields }: LogRecord): string {
  const at = time === null ? null : new Date(time).toISOString();
  return JSON.stringify({ ...fields, time: at, level, service, replica: source, msg: message });
}

function clock(time: number | null): string {
  if (time === null) return "            ";
  const date = new Date(time);
  const two = (value: number): string => String(value).padStart(2, "0");
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}

function formatOf(source: string): Format {
  let sum = 0;
  for (const sign of source) sum += sign.codePointAt(0) ?? 0;
  return sourceFormats[sum % sourceFormats.length] ?? "cyan";
}

function shown(value: unknown): string {
  return stripControl(typeof value === "string" ? value : JSON.stringify(value));
}

function errorOf(value: unknown): { message: string; stack: string | undefined } | null {
  if (typeof value !== "object" || value === null) return null;
  const { message, stack } = value as { message?: unknown; stack?: unknown };
  if (typeof message !== "string") return null;
  // The first line of a stack repeats the message.
  const frames = typeof stack === "string" ? stack.split("\n").slice(1).join("\n") : "";
  return { message, stack: frames === "" ? undefined : frames };
}

function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `    ${line.trim()}`)
    .join("\n");
}
