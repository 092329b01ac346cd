// The environment of a `parley` process: streams, variables, working folder and colours.

import { styleText } from "node:util";

export type Format = Parameters<typeof styleText>[0];

export interface Io {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export function processIo(): Io {
  const { stdin, stdout, stderr, env } = process;
  return { stdin, stdout, stderr, env, cwd: process.cwd() };
}

/** Colours a text, or returns it unchanged. */
export type Paint = (format: Format, text: string) => string;

export const plain: Paint = (_format, text) => text;

/** Colours only on a terminal or with FORCE_COLOR; never with NO_COLOR. */
export function painter(stream: { isTTY?: boolean }, env: Io["env"]): Paint {
  if (env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "") return plain;
  const forced = env["FORCE_COLOR"] !== undefined && !["", "0", "false"].includes(env["FORCE_COLOR"]);
  if (!forced && (stream.isTTY !== true || env["TERM"] === "dumb")) return plain;
  return (format, text) => (text === "" ? "" : styleText(format, text, { validateStream: false }));
}

/** Writes one line of data to standard output. */
export function print(io: Io, line: string): void {
  io.stdout.write(`${line}\n`);
}

export function printJson(io: Io, value: unknown): void {
  print(io, JSON.stringify(value, null, 2));
}

/** Writes one line to standard error, for everything that is not data. */
export function note(io: Io, line: string): void {
  io.stderr.write(`${line}\n`);
}
