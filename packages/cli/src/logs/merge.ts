// Merges several logs by time. Pure. A line without a time stays with the line before it in its log.

import { levels, readLine, type Level, type LogRecord } from "./line.ts";

export interface LogText {
  /** The file's name without `.log`. */
  readonly source: string;
  readonly lines: readonly string[];
}

export interface LogFilter {
  /** A service, or one replica. */
  readonly service?: string | undefined;
  /** The minimum level. */
  readonly level?: Level | undefined;
  /** Milliseconds since 1970. */
  readonly since?: number | undefined;
}

export function mergeLogs(logs: readonly LogText[], filter: LogFilter): LogRecord[] {
  const records = logs.flatMap(({ source, lines }) => {
    const reader = new LogReader(source);
    return lines.map((line) => reader.read(line));
  });
  return records.filter((record) => passes(record, filter)).toSorted((a, b) => (a.time ?? 0) - (b.time ?? 0)); // stable: equal times keep the order of their log
}

/** Parses the lines of one log in order and assigns each a time. */
export class LogReader {
  readonly #source: string;
  #lastTime: number | null = null;
  #lastLevel: Level = "info";

  constructor(source: string) {
    this.#source = source;
  }

  read(line: string): LogRecord {
    const record = readLine(line, this.#source);
    if (record.time === null) return { ...record, time: this.#lastTime, level: this.#lastLevel };
    this.#lastTime = record.time;
    this.#lastLevel = record.level;
    return record;
  }
}

export function passes(record: LogRecord, { service, level, since }: LogFilter): boolean {
  if (service !== undefined && record.service !== service && record.source !== service) return false;
  if (level !== undefined && levels.indexOf(record.level) < levels.indexOf(level)) return false;
  return since === undefined || (record.time ?? 0) >= since;
}

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `10m`, `2h`, `1d` before now, or a date and time; null when it is neither. */
export function readSince(text: string, now: number): number | null {
  const ago = /^(\d{1,9})([smhd])$/.exec(text);
  if (ago !== null) return now - Number(ago[1]) * (unitMs[ago[2] as keyof typeof unitMs] ?? 0);
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}
