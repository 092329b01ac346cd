// The end of a run: its result on standard output, and the exit code.

import { printAnswer } from "../chat/print-answer.ts";
import { exitCodes, type Io, note, print } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";
import type { OutputFormat } from "./options.ts";
import type { RunResult } from "./stream.ts";

/** Prints the result, if the format has one, and returns the exit code. `interrupted`: the program stopped a turn itself. */
export function finishRun(
  io: Io,
  output: OutputFormat,
  result: RunResult | null,
  { failed, interrupted }: { failed: boolean; interrupted: boolean },
): number {
  if (result === null) return failed ? exitCodes.error : exitCodes.ok;
  if (output === "json") print(io, JSON.stringify(result));
  if (output === "text") {
    if (result.is_error) note(io, stripControl(result.result));
    else printAnswer(io, result.result);
  }
  const isStopped = interrupted && result.terminal_reason === "interrupted";
  return (result.is_error && !isStopped) || failed ? exitCodes.error : exitCodes.ok;
}
