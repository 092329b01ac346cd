// The output of `npm start` for people. It goes to standard error, because standard output contains only answers.

import { styleText } from "node:util";

const COLOURS = ["cyan", "magenta", "yellow", "green", "blue"] as const;

/** Writes one line of a service, prefixed with the replica's name; each replica has a colour on a terminal. */
export function serviceLineWriter(isTerminal: boolean): (replica: string, line: string) => void {
  const colours = new Map<string, (typeof COLOURS)[number]>();
  return (replica, line) => {
    if (!isTerminal) {
      process.stderr.write(`${replica} | ${line}\n`);
      return;
    }
    const colour = colours.get(replica) ?? COLOURS[colours.size % COLOURS.length] ?? "cyan";
    colours.set(replica, colour);
    process.stderr.write(`${styleText(colour, `${replica} |`, { stream: process.stderr })} ${line}\n`);
  };
}

export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
