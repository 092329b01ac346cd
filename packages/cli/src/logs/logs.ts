// `parley logs`: the logs of all processes on this machine, merged by time.

import { existsSync } from "node:fs";
import { join } from "node:path";

import { homePath } from "../cluster/target.ts";
import { CliError, exitCodes, painter, print, UsageError, type Io } from "../io/io.ts";
import { flag, homeOption, jsonOption, text, type OptionTable, type OptionValues } from "../io/options.ts";
import { followLogs, readLogs } from "./files.ts";
import { recordJson, recordText } from "./format.ts";
import {
  levels,
  logNames,
  mergeLogs,
  passes,
  readSince,
  type LogFilter,
  type LogRecord,
  type LogText,
} from "./records.ts";

/** Default number of past lines that `--follow` prints. */
export const linesBeforeFollowing = 20;

/** Options of the commands that print logs. */
export const logOptions: OptionTable = {
  ...homeOption,
  ...jsonOption,
  follow: flag("keep printing new lines", "f"),
  level: text("<level>", "minimum level", levels),
  since: text("<time>", "an age such as 30s, 10m, 2h or 1d, or a date"),
  lines: { ...text("<count>", "only the last lines; default 20 with --follow"), short: "n" },
};

/** `account`: only lines about this account of a channel. Returns the exit code; with --follow, after Ctrl-C. */
export async function printLogs(values: OptionValues, io: Io, account?: LogFilter["account"]): Promise<number> {
  const filter = { ...readFilter(values), account };
  const lines = values.number("lines", "a number", { min: 0 });
  const follow = values.has("follow");
  const folder = join(homePath(values, io), "logs");
  if (!existsSync(folder)) {
    throw new CliError(`There are no logs in ${folder}.`, {
      fix: "No cluster has run in this data folder; name another one with --home, or start one with: npm start",
    });
  }
  const printRecord = recordPrinter(values, io);
  const show = (record: LogRecord): void => {
    if (passes(record, filter)) printRecord(record);
  };
  const stopping = new AbortController();
  if (follow) process.once("SIGINT", () => stopping.abort());
  const late: LogRecord[] = [];
  let onRecord = (record: LogRecord): void => void late.push(record);
  // Following starts before reading, so that no line is lost in between; a line may then be in both.
  const following = follow ? followLogs(folder, (record) => onRecord(record), stopping.signal) : undefined;
  const logs = readLogs(folder);
  const all = mergeLogs(logs, filter);
  if (all.length === 0) requireService(logs, filter, stopping);
  const count = lines ?? (follow && filter.since === undefined ? linesBeforeFollowing : all.length);
  for (const record of count === 0 ? [] : all.slice(-count)) show(record);
  onRecord = show;
  for (const record of late) show(record);
  await following;
  return exitCodes.ok;
}

/** Throws UsageError, after it has ended following, if no log is of the service that the filter names. */
function requireService(logs: readonly LogText[], { service }: LogFilter, following: AbortController): void {
  if (service === undefined) return;
  const names = logNames(logs, mergeLogs(logs, {}));
  if (names.includes(service)) return;
  following.abort();
  throw new UsageError(`No log is of a service, replica or server "${service}".`, `There are: ${names.join(", ")}`);
}

/** Prints records as text, or as JSON with --json. */
export function recordPrinter(values: OptionValues, io: Io): (record: LogRecord) => void {
  const paint = painter(io.stdout, io.env);
  return (record) => print(io, values.has("json") ? recordJson(record) : recordText(record, paint));
}

/** The filter that --service, --level and --since name. Throws UsageError. */
export function readFilter(values: OptionValues): LogFilter {
  const since = values.text("since");
  const from = since === undefined ? undefined : readSince(since, Date.now());
  if (from === null) {
    throw new UsageError(
      `--since: "${since ?? ""}" is not a time. Write 30s, 10m, 2h, 1d or a date such as 2026-11-21T20:00.`,
    );
  }
  const level = levels.find((each) => each === values.text("level"));
  return { service: values.text("service"), level, since: from };
}
