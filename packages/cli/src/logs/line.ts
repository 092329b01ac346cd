// Parses one log line: the services' JSON, and the formats of PostgreSQL, Redis and NATS. Pure.

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
  const value = line.startsWith("{") ? parse(line) : undefined;
  if (value === undefined) return { ...plainLine(line), source, service, fields: {} };
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

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
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
