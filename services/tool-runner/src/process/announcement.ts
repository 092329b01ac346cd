// What a session is told when one of its commands in the background has ended and nobody was looking. Pure.
import type { CommandReport } from "../exec/executor.ts";
import { callText } from "../tool.ts";
import { endLines, type Surroundings } from "../tools/exec-result.ts";
import { untrusted } from "../web/untrusted.ts";
import type { TextRing } from "./text-ring.ts";

/** Of what it has printed, the last so many characters and lines are shown; the rest can be read. */
const shownCharacters = 3_000;
const shownLines = 40;
/** Of the command, so many characters name it. */
const commandCharacters = 200;

export interface Ended {
  id: string;
  command: string;
  output: Pick<TextRing, "read" | "end">;
  end: CommandReport;
}

/** For the model: what ended and how, the last of its output, how to read the rest. */
export function announcement({ id, command, output, end }: Ended, around: Surroundings): string {
  const name = JSON.stringify(command.slice(0, commandCharacters).toWellFormed());
  return [
    `A command in the background has ended: ${name} (${id}).`,
    ...endLines(end, around),
    ...lastOutput(id, output),
    "If somebody waits for this, tell them in short what came of it; if there is something left to do, do it.",
  ].join("\n");
}

function lastOutput(id: string, output: Ended["output"]): string[] {
  if (output.end === 0) return ["It printed nothing."];
  const { text } = output.read(Math.max(0, output.end - shownCharacters), shownCharacters);
  const shown = text.replace(/\n$/, "").split("\n").slice(-shownLines).join("\n");
  const more =
    shown.length + 1 < output.end ? [`[All that is kept of it: ${callText("process", { action: "log", id })}]`] : [];
  return [untrusted("the last that the command printed", shown), ...more];
}
