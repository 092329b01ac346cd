// The newest log lines of this process about each account, for operators who cannot read its output. Bounded; lost at the end of the process.
import { logLevels, type accountLogs, type InputOf, type OutputOf } from "@parley/contracts";
import { parseJson } from "@parley/kit";

type LogLine = OutputOf<typeof accountLogs>["lines"][number];

/** The lines that are kept of each account, and how many accounts. */
const maxLines = 200;
const maxAccounts = 500;
/** The longest message or field that is kept. */
const maxChars = 1_000;
/** The fields that are kept of a line. */
const maxFields = 16;
/** The longest line that is read: longer ones are rare, and reading one delays everything else. */
const maxLineChars = 64 * 1_024;
/** The size of one reply, far below what the bus allows. */
const maxReplyChars = 128 * 1_024;

/** What each line has, apart from its fields. */
const known = new Set(["time", "level", "service", "replica", "msg", "channel", "account"]);

export class AccountLog {
  readonly #lines = new Map<string, LogLine[]>();

  /** Reads a line as it was written: without secrets. */
  add(line: string): void {
    if (line.length > maxLineChars || !(line.includes('"account":"') || line.includes('"lease":"'))) return;
    const value = parseJson(line);
    if (typeof value !== "object" || value === null) return;
    const record = value as Readonly<Record<string, unknown>>;
    const name = accountIn(record);
    if (name === undefined) return;
    const lines = this.#lines.get(name) ?? [];
    // The least recently written account is first.
    this.#lines.delete(name);
    this.#lines.set(name, lines);
    lines.push(lineOf(record));
    if (lines.length > maxLines) lines.shift();
    const [oldest] = this.#lines.keys();
    if (this.#lines.size > maxAccounts && oldest !== undefined) this.#lines.delete(oldest);
  }

  /** The newest lines of an account that fit into one reply, oldest first. */
  of({ channel, account, level, since, limit }: InputOf<typeof accountLogs>): LogLine[] {
    const found = this.#lines.get(`${channel}:${account}`) ?? [];
    const matching = found.filter((line) => isAtLeast(line.level, level) && (since === undefined || line.at >= since));
    let chars = 0;
    const newest = matching.slice(-limit).toReversed();
    const fitting = newest.filter((line) => (chars += JSON.stringify(line).length) <= maxReplyChars);
    return fitting.toReversed();
  }
}

function isAtLeast(level: LogLine["level"], wanted: LogLine["level"]): boolean {
  return logLevels.indexOf(level) >= logLevels.indexOf(wanted);
}

/** `channel:account`, from the fields of the line or from a lease of the account. */
function accountIn({ channel, account, lease }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof account === "string") return typeof channel === "string" ? `${channel}:${account}` : account;
  return typeof lease === "string" ? lease.split("#")[0] : undefined;
}

function lineOf(record: Readonly<Record<string, unknown>>): LogLine {
  const { time, level, replica, msg } = record;
  const fields = Object.entries(record).filter(([name]) => !known.has(name));
  return {
    at: typeof time === "string" ? time : new Date().toISOString(),
    level: logLevels.find((each) => each === level) ?? "info",
    replica: typeof replica === "string" ? replica : "",
    message: clipped(msg),
    fields: Object.fromEntries(fields.slice(0, maxFields).map(([name, value]) => [name, clipped(value)])),
  };
}

function clipped(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value ?? "");
  return text.slice(0, maxChars).toWellFormed();
}
