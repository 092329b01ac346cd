// Due times of jobs. Pure. A schedule is a text in one of three forms, `at`, `every` and `cron`, and is stored in normalized form.
//
// Daylight saving in the job's time zone: a pattern with fixed hours runs once a day. If that hour does not exist, it runs at the first
// moment after the gap; if the hour occurs twice, it runs the first time. A pattern with `*` or steps in its hours follows the clock:
// nothing runs in the gap, and the repeated hour runs twice.
import { Cron, CronDate, type CronOptions } from "croner";

export type Recurrence =
  /** Milliseconds since 1970. */
  { kind: "at"; at: number } | { kind: "every"; everyMs: number } | { kind: "cron"; pattern: string };

/** An invalid schedule; the message names the field and shows valid examples. */
export class InvalidScheduleError extends Error {
  override readonly name = "InvalidScheduleError";
}

const examples =
  "valid examples: at 2030-05-01T09:00, at +20m, every 30m, every 1h30m, cron 0 9 * * 1-5 (minute hour day month weekday)";
/** Later times have no four-digit year, which the database and people expect. */
const maxAt = Date.parse("9999-12-31T23:59:59.999Z");
const maxEveryMs = 366 * 24 * 60 * 60 * 1000;
const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/**
 * Parses a schedule as people and models write it: the keyword may be left out where the rest is unambiguous. Throws InvalidScheduleError, also
 * for a time in the past and a pattern without a future occurrence.
 */
export function parseRecurrence(text: string, timeZone: string, now: number): Recurrence {
  checkZone(timeZone);
  const trimmed = text.trim().replaceAll(/\s+/g, " ");
  const [, word, rest = ""] = /^(?:(at|every|cron|in)\b:? ?)?(.*)$/i.exec(trimmed) ?? [];
  const when = read(word?.toLowerCase(), rest, timeZone, now);
  if (when === undefined) throw new InvalidScheduleError(`schedule: "${trimmed}" is not a valid schedule; ${examples}`);
  if (when.kind === "at" && when.at > maxAt)
    throw new InvalidScheduleError(`schedule: the time is after the year 9999; ${examples}`);
  if (when.kind === "at" && when.at <= now) {
    throw new InvalidScheduleError(
      `schedule: ${new Date(when.at).toISOString()} is in the past; now it is ${new Date(now).toISOString()}`,
    );
  }
  if (when.kind === "cron" && nextDue(when, timeZone, now, now) === null) {
    throw new InvalidScheduleError(`schedule: "${when.pattern}" never occurs; ${examples}`);
  }
  return when;
}

function read(word: string | undefined, rest: string, timeZone: string, now: number): Recurrence | undefined {
  const duration = durationMs(rest.replace(/^\+/, ""));
  switch (word) {
    case "at":
      if (duration !== undefined && rest.startsWith("+")) return { kind: "at", at: now + duration };
      return moment(rest, timeZone);
    case "in":
      return duration === undefined ? undefined : { kind: "at", at: now + duration };
    case "every":
      return duration === undefined ? undefined : every(duration);
    case "cron":
      return cron(rest, timeZone);
    default:
      if (duration !== undefined) {
        return rest.startsWith("+") ? { kind: "at", at: now + duration } : every(duration);
      }
      return moment(rest, timeZone) ?? (/^(?:\S+ ){4,5}\S+$|^@\w+$/.test(rest) ? cron(rest, timeZone) : undefined);
  }
}

function every(everyMs: number): Recurrence {
  if (everyMs < 1_000 || everyMs > maxEveryMs) {
    throw new InvalidScheduleError("schedule: `every` takes an interval from 1s to 366d, for example every 30m");
  }
  return { kind: "every", everyMs };
}

/** `90s`, `1h30m`, `15 minutes`; undefined for anything else. */
function durationMs(text: string): number | undefined {
  const pattern =
    /(\d+(?:\.\d+)?) ?(w(?:eeks?)?|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?: |,|(?=\d)|$)/giy;
  let total = 0;
  let at = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    total += Number(match[1]) * (unitMs[(match[2] ?? "").slice(0, 1).toLowerCase()] ?? 0);
    at = pattern.lastIndex;
  }
  return at === text.length && at > 0 ? Math.round(total) : undefined;
}

const isoMoment = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2})?(\.\d{1,3})?\d*)? ?(Z|[+-]\d{2}:?\d{2})?$/i;

/** Parses an ISO 8601 time; without an offset it is in the time zone. One that the clocks skip is later by the length of the gap. */
function moment(text: string, timeZone: string): Recurrence | undefined {
  const match = isoMoment.exec(text);
  if (match === null) return undefined;
  const [, date = "", minutes = "00:00", seconds = ":00", fraction = "", offset] = match;
  const at = Date.parse(`${date}T${minutes}${seconds}${fraction}${(offset ?? "Z").toUpperCase()}`);
  if (Number.isNaN(at)) return undefined;
  // `Date` counts on from the end of the month: 30 February would be 2 March.
  if (!new Date(`${date}T00:00:00Z`).toISOString().startsWith(date))
    throw new InvalidScheduleError(`schedule: ${date} is not a day of the calendar; ${examples}`);
  return { kind: "at", at: offset === undefined ? fromLocal(new Date(at), timeZone) : at };
}

/** The moment, in milliseconds since 1970, at which the clocks of the time zone show what `utc` shows in UTC. */
function fromLocal(utc: Date, timeZone: string): number {
  const local = new CronDate(utc, timeZone);
  // Not a text without an offset: croner reads it in the time zone of the process first, which has gaps of its own.
  local.year = utc.getUTCFullYear();
  local.month = utc.getUTCMonth();
  local.day = utc.getUTCDate();
  local.hour = utc.getUTCHours();
  local.minute = utc.getUTCMinutes();
  local.second = utc.getUTCSeconds();
  // Its moments are whole seconds.
  return local.getDate(false).getTime() + utc.getUTCMilliseconds();
}

/** `0 9,17 * * *` has fixed hours, like `0 9 * * *`. */
function cronOptions(timeZone: string): CronOptions {
  return { timezone: timeZone, mode: "5-or-6-parts", fixedTimeRule: "no-wildcard" };
}

function cron(pattern: string, timeZone: string): Recurrence {
  // `?` would mean the time at which the pattern is read.
  if (pattern.includes("?"))
    throw new InvalidScheduleError(`schedule: "?" is not supported in a cron pattern; ${examples}`);
  try {
    void new Cron(pattern, cronOptions(timeZone)).nextRun();
    return { kind: "cron", pattern };
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    throw new InvalidScheduleError(`schedule: "${pattern}": ${reason}; ${examples}`, { cause: error });
  }
}

function checkZone(timeZone: string): void {
  try {
    void new Intl.DateTimeFormat("en", { timeZone });
  } catch (error) {
    throw new InvalidScheduleError(
      `time_zone: "${timeZone}" is not an IANA time zone; a valid example is Europe/Berlin`,
      {
        cause: error,
      },
    );
  }
}

/** The normalized form, which `fromText` parses. */
export function toText(when: Recurrence): string {
  switch (when.kind) {
    case "at":
      return `at ${new Date(when.at).toISOString()}`;
    case "every":
      return `every ${when.everyMs / 1_000}s`;
    case "cron":
      return `cron ${when.pattern}`;
    default:
      return when satisfies never;
  }
}

const intervalUnits = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
] as const;

/** The normalized form as people write it: `every 5400s` is `every 1h30m`. `parseRecurrence` reads it too. */
export function readableText(normalized: string): string {
  const when = fromText(normalized);
  if (when.kind !== "every") return normalized;
  let restMs = when.everyMs;
  let text = "";
  for (const [unit, ms] of intervalUnits) {
    const count = Math.floor(restMs / ms);
    if (count > 0) text += `${count}${unit}`;
    restMs -= count * ms;
  }
  return `every ${text}${restMs > 0 ? `${restMs / 1_000}s` : ""}`;
}

/** Parses the normalized form. */
export function fromText(text: string): Recurrence {
  const space = text.indexOf(" ");
  const rest = text.slice(space + 1);
  switch (text.slice(0, space)) {
    case "at":
      return { kind: "at", at: Date.parse(rest) };
    case "every":
      return { kind: "every", everyMs: Math.round(Number.parseFloat(rest) * 1_000) };
    default:
      return { kind: "cron", pattern: rest };
  }
}

/**
 * The first due time after a moment, in milliseconds since 1970; null when there is none. `anchor` is the time when the schedule was
 * set, from which `every` counts. Throws for an unknown time zone.
 */
export function nextDue(when: Recurrence, timeZone: string, anchor: number, after: number): number | null {
  switch (when.kind) {
    case "at":
      return when.at > after ? when.at : null;
    case "every": {
      const steps = Math.max(1, Math.floor((after - anchor) / when.everyMs) + 1);
      return anchor + steps * when.everyMs;
    }
    case "cron":
      return nextOfPattern(when.pattern, timeZone, after);
    default:
      return when satisfies never;
  }
}

/** Cache: jobs of one batch often share a pattern, and computing a time takes 0.1 ms. */
const found = new Map<string, number | null>();
const maxFound = 1_000;

function nextOfPattern(pattern: string, timeZone: string, after: number): number | null {
  const key = `${after} ${timeZone} ${pattern}`;
  const known = found.get(key);
  if (known !== undefined) return known;
  const next = new Cron(pattern, cronOptions(timeZone)).nextRun(new Date(after))?.getTime() ?? null;
  if (found.size >= maxFound) found.clear();
  found.set(key, next);
  return next;
}
