// Log lines as records: the services' JSON, and the formats of PostgreSQL, Redis and NATS; several logs merged by time. Pure.

import { parseJson } from "@parley/kit";

export const levels = ["trace", "debug", "info", "warn", "error", "fatal"] as const;
export type Level = (typeof levels)[number];

export interface LogRecord {
  /** Milliseconds since 1970; null if the line has no time. */
  readonly time: number | null;
  readonly level: Level;
  /** The replica, or the server. */
  readonly source: string;
  readonly service: string;
  readonly message: string;
  /** The remaining fields. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const known = new Set(["time", "level", "service", "replica", "msg", "pid", "hostname"]);

/** Parses a line of the log named `source`: `store-1`, `redis`, `migrate`. */
export function readLine(line: string, source: string): LogRecord {
  const service = source.replace(/-\d+$/, "");
  const value = line.startsWith("{") ? parseJson(line) : undefined;
  if (!isRecord(value)) return { ...plainLine(line), source, service, fields: {} };
  const level = levels.find((each) => each === value["level"]) ?? "info";
  const fields = Object.fromEntries(Object.entries(value).filter(([key]) => !known.has(key)));
  return {
    time: timeOf(value["time"]),
    level,
    source: typeof value["replica"] === "string" ? value["replica"] : source,
    service: typeof value["service"] === "string" ? value["service"] : service,
    message: typeof value["msg"] === "string" ? value["msg"] : "",
    fields,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function timeOf(value: unknown): number | null {
  const time = typeof value === "number" ? value : typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

type Plain = Pick<LogRecord, "time" | "level" | "message">;

/** The servers are started with their clocks in UTC. */
const forms: readonly { pattern: RegExp; read: (groups: Record<string, string>) => Plain }[] = [
  {
    // [4711] 2026/11/21 21:44:01.123456 [INF] Server is ready
    pattern: /^\[\d+\] (?<day>\d{4}\/\d\d\/\d\d) (?<clock>[\d:]{8}(?:\.\d+)?) \[(?<level>[A-Z]{3})\] (?<message>.*)$/,
    read: ({ day = "", clock = "", level = "", message = "" }) => ({
      time: timeOf(`${day.replaceAll("/", "-")}T${clock.slice(0, 12)}Z`),
      level:
        ({ TRC: "trace", DBG: "debug", WRN: "warn", ERR: "error", FTL: "fatal" }[level] as Level | undefined) ?? "info",
      message,
    }),
  },
  {
    // 4711:M 21 Nov 2026 21:44:01.123 * Ready to accept connections
    pattern: /^\d+:[A-Z] (?<date>\d\d \w{3} \d{4}) (?<clock>[\d:.]+) (?<mark>[.\-*#]) (?<message>.*)$/,
    read: ({ date = "", clock = "", mark = "", message = "" }) => ({
      time: timeOf(`${date} ${clock} UTC`),
      level: mark === "#" ? "warn" : mark === "." ? "debug" : "info",
      message,
    }),
  },
  {
    // 2026-11-21 21:44:01.123 UTC [4711] LOG:  starting PostgreSQL
    pattern:
      /^(?<day>\d{4}-\d\d-\d\d) (?<clock>[\d:.]+) (?:UTC|GMT) \[\d+\](?:.*?) (?<level>[A-Z]+\d?): +(?<message>.*)$/,
    read: ({ day = "", clock = "", level = "", message = "" }) => ({
      time: timeOf(`${day}T${clock}Z`),
      level:
        level === "PANIC" || level === "FATAL"
          ? "fatal"
          : level === "ERROR"
            ? "error"
            : level === "WARNING"
              ? "warn"
              : level.startsWith("DEBUG")
                ? "debug"
                : "info",
      message,
    }),
  },
];

function plainLine(line: string): Plain {
  for (const { pattern, read } of forms) {
    const groups = pattern.exec(line)?.groups;
    if (groups !== undefined) return read(groups);
  }
  return { time: null, level: "info", message: line };
}

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
  /** Only what concerns this account of a channel. */
  readonly account?: { readonly channel: string; readonly account: string } | undefined;
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

/** Whether a line names the account: in its own fields, as `channel:account`, or by a lease. */
function concerns({ fields }: LogRecord, { channel, account }: NonNullable<LogFilter["account"]>): boolean {
  const name = `${channel}:${account}`;
  if (fields["account"] === name || (fields["channel"] === channel && fields["account"] === account)) return true;
  return typeof fields["lease"] === "string" && fields["lease"].split("#")[0] === name;
}

/** The services, replicas and servers that `--service` can name, sorted. */
export function logNames(logs: readonly LogText[], records: readonly LogRecord[]): string[] {
  const names = new Set(logs.flatMap(({ source }) => [source, source.replace(/-\d+$/, "")]));
  for (const { service, source } of records) names.add(service).add(source);
  return [...names].sort();
}

export function passes(record: LogRecord, { service, level, since, account }: LogFilter): boolean {
  if (account !== undefined && !concerns(record, account)) return false;
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
