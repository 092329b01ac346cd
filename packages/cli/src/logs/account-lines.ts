// `parley channels logs` for a cluster on other machines: the lines that its gateways keep about an account.

import type { operations } from "@parley/contracts";
import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { exitCodes, type Io } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";
import { linesBeforeFollowing, readFilter, recordPrinter } from "./logs.ts";
import type { LogFilter, LogRecord } from "./records.ts";

type Line = z.output<typeof operations.channelsLogs.output>["lines"][number];

/** What one request returns at most, by the operation. */
const maxLines = 200;
/** How often `--follow` asks for new lines. */
const followEveryMs = 2_000;

/** Prints the newest lines of all gateways. Returns the exit code; with --follow, after Ctrl-C. */
export async function printAccountLines(
  values: OptionValues,
  io: Io,
  gateway: Gateway,
  account: NonNullable<LogFilter["account"]>,
): Promise<number> {
  const { level = "trace", since } = readFilter(values);
  const follow = values.has("follow");
  const first = values.number("lines", `a number up to ${maxLines}`, { max: maxLines });
  const print = recordPrinter(values, io);
  const read = async (from: string | undefined, limit: number): Promise<readonly Line[]> => {
    const range = from === undefined ? {} : { since: from };
    return (await gateway.run(api.channelLogs, { ...account, level, limit, ...range })).lines;
  };
  const limit = first ?? (follow && since === undefined ? linesBeforeFollowing : maxLines);
  let shown = await read(since === undefined ? undefined : new Date(since).toISOString(), limit);
  for (const line of shown) print(recordOf(line));
  if (!follow) return exitCodes.ok;
  const stopping = new AbortController();
  process.once("SIGINT", () => stopping.abort());
  while (!stopping.signal.aborted) {
    await delay(followEveryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    if (stopping.signal.aborted) break;
    const found = await read(shown.at(-1)?.at, maxLines);
    const known = new Set(shown.map((line) => JSON.stringify(line)));
    const fresh = found.filter((line) => !known.has(JSON.stringify(line)));
    for (const line of fresh) print(recordOf(line));
    // Lines of the same millisecond as the last one come again.
    if (fresh.length > 0) shown = found;
  }
  return exitCodes.ok;
}

function recordOf({ at, level, replica, message, fields }: Line): LogRecord {
  return { time: Date.parse(at), level, source: replica, service: "channel-gateway", message, fields };
}
