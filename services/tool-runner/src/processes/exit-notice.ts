// Formats the exit notice: what a session receives when a background process ends that no call was waiting for. Pure.
import type { CommandResult } from "../sandbox/executor.ts";
import { formatCall } from "../tool/tool.ts";
import { statusLines, type ExecConditions } from "../sandbox/format-result.ts";
import { wrapUntrusted } from "../tool/untrusted-block.ts";
import type { TextRingBuffer } from "./ring-buffer.ts";

/** Limits on the output shown; the rest can be read with the tool `process`. */
const shownCharacters = 3_000;
const shownLines = 40;
/** Characters of the command used as its name. */
const commandCharacters = 200;

export interface Ended {
  id: string;
  command: string;
  output: Pick<TextRingBuffer, "read" | "end">;
  end: CommandResult;
}

/** The notice for the model: what ended and how, the last output, and how to read the rest. */
export function formatExitNotice({ id, command, output, end }: Ended, conditions: ExecConditions): string {
  const name = JSON.stringify(command.slice(0, commandCharacters).toWellFormed());
  return [
    `Background process ended: ${name} (${id}).`,
    ...statusLines(end, conditions),
    ...lastOutput(id, output),
    "If someone is waiting for this, summarize the result for them briefly. If work remains, do it.",
  ].join("\n");
}

function lastOutput(id: string, output: Ended["output"]): string[] {
  if (output.end === 0) return ["It printed nothing."];
  const { text } = output.read(Math.max(0, output.end - shownCharacters), shownCharacters);
  const shown = text.replace(/\n$/, "").split("\n").slice(-shownLines).join("\n");
  const more =
    shown.length + 1 < output.end ? [`[All stored output: ${formatCall("process", { action: "log", id })}]`] : [];
  return [wrapUntrusted("the last output of the command", shown), ...more];
}
