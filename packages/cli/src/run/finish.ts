// The end of a run: its result on standard output, and the exit code.

import { printAnswer } from "../chat/print-answer.ts";
import { exitCodes, type Io, note, print } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";
import type { OutputFormat } from "./options.ts";
import type { RunResult } from "./stream.ts";

/**
 * Prints the result, if the format has one, and returns the exit code. `interrupted`: the program stopped a turn itself. `maxUsd`: the limit
 * of the run in US dollars; null: none.
 */
export function finishRun(
  io: Io,
  output: OutputFormat,
  result: RunResult | null,
  { failed, interrupted, maxUsd }: { failed: boolean; interrupted: boolean; maxUsd: number | null },
): number {
  if (result === null) return failed ? exitCodes.error : exitCodes.ok;
  if (output === "json") print(io, JSON.stringify(result));
  if (output === "text") {
    if (result.is_error) note(io, stripControl(result.result));
    else printAnswer(io, result.result);
  }
  if (maxUsd !== null && result.total_cost_usd === null)
    note(io, `limit of ${maxUsd} US dollars: calls without a known price did not count; ${priceFix}`);
  const isStopped = interrupted && result.terminal_reason === "interrupted";
  return (result.is_error && !isStopped) || failed ? exitCodes.error : exitCodes.ok;
}

const priceFix = 'set price in [models.known."<model>"] of parley.toml (docs/reference/settings.md)';
