// A yes/no confirmation on the terminal.

import { createInterface } from "node:readline";

import type { Io } from "./io.ts";

export function canAsk({ stdin, stdout }: Pick<Io, "stdin" | "stdout">): boolean {
  return stdin.isTTY && stdout.isTTY;
}

/** True only for `y` or `yes`; an empty line, Ctrl-C and Ctrl-D are false. */
export async function confirm({ stdin, stdout }: Pick<Io, "stdin" | "stdout">, question: string): Promise<boolean> {
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
