// The outside of a run of `parley`: streams, environment, working folder, and whether colours are wanted.

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

/** Colours a text, or leaves it. */
export type Paint = (format: Format, text: string) => string;

export const plain: Paint = (_format, text) => text;

/** Paints where the stream is a terminal; never with NO_COLOR. */
export function painter(stream: { isTTY?: boolean }, env: Io["env"]): Paint {
  if (env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "") return plain;
  const forced = env["FORCE_COLOR"] !== undefined && !["", "0", "false"].includes(env["FORCE_COLOR"]);
  if (!forced && (stream.isTTY !== true || env["TERM"] === "dumb")) return plain;
  return (format, text) => (text === "" ? "" : styleText(format, text, { validateStream: false }));
}

/** Data: one line on standard output. */
export function print(io: Io, line: string): void {
  io.stdout.write(`${line}\n`);
}

export function printJson(io: Io, value: unknown): void {
  print(io, JSON.stringify(value, null, 2));
}

/** Everything that is not data: one line on standard error. */
export function note(io: Io, line: string): void {
  io.stderr.write(`${line}\n`);
}
