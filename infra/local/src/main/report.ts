// The output of `npm start` for people. It goes to standard error, because standard output contains only answers.

import { inspect, styleText } from "node:util";

import { z } from "zod";

import { knownSystemError, LocalError } from "../errors.ts";
import { splitStates } from "../introduction.ts";
import { sendToTerminal } from "./detached.ts";

/** Writes an error to standard error. */
export function report(failure: unknown): void {
  const error = knownSystemError(failure, "the data folder") ?? failure;
  if (error instanceof LocalError) {
    print(error.message);
    if (error.fix !== null) print(error.fix);
  } else {
    print(inspect(error));
  }
}

const replicaColours = ["cyan", "magenta", "yellow", "green", "blue"] as const;

/** Writes one line of a service, prefixed with the replica's name; each replica has a colour on a terminal. */
export function serviceLineWriter(isTerminal: boolean): (replica: string, line: string) => void {
  const colours = new Map<string, (typeof replicaColours)[number]>();
  return (replica, line) => {
    if (!isTerminal) {
      process.stderr.write(`${replica} | ${line}\n`);
      return;
    }
    const colour = colours.get(replica) ?? replicaColours[colours.size % replicaColours.length] ?? "cyan";
    colours.set(replica, colour);
    process.stderr.write(`${styleText(colour, `${replica} |`, { stream: process.stderr })} ${line}\n`);
  };
}

/** Writes a line to standard error; in the background, to the terminal that waits for the start. */
export function print(line: string): void {
  if (!sendToTerminal({ line })) process.stderr.write(`${line}\n`);
}

/** If a gateway does not answer within this time, the lines are omitted: the start does not wait. */
const withinMs = 1_000;

const Status = z.object({
  replicas: z.array(z.object({ details: z.object({ channels: z.string().optional() }) })),
});

/** What the replicas say of each account, for example `<channel>:<account> connected as @bot`; empty if nothing is configured or known. */
export async function channelStates({ httpUrl, token }: { httpUrl: string; token: string }): Promise<string[]> {
  try {
    const response = await fetch(`${httpUrl}/api/status`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(withinMs),
    });
    const { replicas } = Status.parse(await response.json());
    return replicas.flatMap(({ details }) => splitStates(details.channels ?? ""));
  } catch {
    return [];
  }
}

const Code = z.object({ code: z.string() });

/** A link that opens the console in a browser, signed in; null if the gateway does not answer. */
export async function consoleLink({ httpUrl, token }: { httpUrl: string; token: string }): Promise<string | null> {
  try {
    const response = await fetch(`${httpUrl}/api/console/codes`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(withinMs),
    });
    return `${httpUrl}/#code=${Code.parse(await response.json()).code}`;
  } catch {
    return null;
  }
}
