// `parley logs`: the logs of all processes on this machine, merged by time.

import { existsSync } from "node:fs";
import { join } from "node:path";

import { homePath } from "../cluster/home.ts";
import type { Run } from "../command-line/command.ts";
import type { OptionValues } from "../command-line/options.ts";
import { CliError, UsageError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { painter, print } from "../io.ts";
import { followLogs, readLogs } from "../logs/files.ts";
import { recordJson, recordText } from "../logs/format.ts";
import { levels, type LogRecord } from "../logs/line.ts";
import { mergeLogs, passes, readSince, type LogFilter } from "../logs/merge.ts";

/** Default number of past lines that `--follow` prints. */
const linesBeforeFollowing = 20;

export const run: Run = async ({ values, io }) => {
  const filter = readFilter(values);
  const follow = values.has("follow");
  const folder = join(homePath(values, io), "logs");
  if (!existsSync(folder)) {
    throw new CliError(`There are no logs in ${folder}.`, {
      fix: "No cluster has run in this data folder; name another one with --home, or start one with: npm start",
    });
  }
  const paint = painter(io.stdout, io.env);
  const show = (record: LogRecord): void =>
    print(io, values.has("json") ? recordJson(record) : recordText(record, paint));

  const stopping = new AbortController();
  if (follow) process.once("SIGINT", () => stopping.abort());
  const late: LogRecord[] = [];
  let hear = (record: LogRecord): number => late.push(record);
  // Following starts before reading, so that no line is lost in between; a line may then be in both.
  const following = follow ? followLogs(folder, (record) => void hear(record), stopping.signal) : undefined;
  const all = mergeLogs(readLogs(folder), filter);
  const count = lineCount(values) ?? (follow && filter.since === undefined ? linesBeforeFollowing : all.length);
  for (const record of count === 0 ? [] : all.slice(-count)) show(record);
  hear = (record) => (passes(record, filter) ? (show(record), 1) : 0);
  for (const record of late) hear(record);
  await following;
  return exitCodes.ok;
};

function readFilter(values: OptionValues): LogFilter {
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

function lineCount(values: OptionValues): number | null {
  const text = values.text("lines");
  if (text === undefined) return null;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`--lines: "${text}" is not a number.`);
  return Number(text);
}
