// A question that is answered with yes or no on the terminal.

import { createInterface } from "node:readline";

import type { Io } from "./io.ts";

export function canAsk({ stdin, stdout }: Pick<Io, "stdin" | "stdout">): boolean {
  return stdin.isTTY && stdout.isTTY;
}

/** Only a y or yes is one: not an empty line, and not Ctrl-C or Ctrl-D. */
export async function askYes({ stdin, stdout }: Pick<Io, "stdin" | "stdout">, question: string): Promise<boolean> {
  const lines = createInterface({ input: stdin, output: stdout, terminal: true });
  const answer = await new Promise<string>((resolve) => {
    lines.once("close", () => {
      stdout.write("\n");
      resolve("");
    });
    lines.question(`${question} [y/N] `, resolve);
  });
  lines.removeAllListeners("close").close();
  return /^y(?:es)?$/i.test(answer.trim());
}
