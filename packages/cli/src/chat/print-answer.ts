// Prints texts of the agent and of commands.

import { type Io, print } from "../io/io.ts";
import { stripControl } from "../tables/format.ts";

/** Writes a text to standard output: unchanged to a file or a pipe, and to a terminal without the characters that control it. */
export function printAnswer(io: Io, text: string): void {
  print(io, io.stdout.isTTY ? stripControl(text) : text);
}
