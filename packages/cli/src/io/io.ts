// The environment of a `parley` process: streams, variables, working folder, colours, exit codes and errors for people.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { stripVTControlCharacters, styleText } from "node:util";

import { omitUndefined, parseJson } from "@parley/kit";
import type { z } from "zod";

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

export const exitCodes = {
  ok: 0,
  error: 1,
  /** The command line is wrong; nothing was done. */
  usage: 2,
  /** The command succeeded and found a problem. */
  unhealthy: 3,
  /** Ended by Ctrl-C, by the convention of shells. */
  interrupted: 130,
  /** Ended by SIGTERM, by the same convention. */
  terminated: 143,
} as const;

/** An error that a person can act on: what failed and how to fix it, without a stack trace. */
export class CliError extends Error {
  override readonly name: string = "CliError";
  readonly exitCode: number;
  /** How to fix it, in one line; null when the message is enough. */
  readonly fix: string | null;

  constructor(message: string, options: { fix?: string | undefined; exitCode?: number; cause?: unknown } = {}) {
    super(message, omitUndefined({ cause: options.cause }));
    this.exitCode = options.exitCode ?? exitCodes.error;
    this.fix = options.fix ?? null;
  }
}

/** The command line is wrong. */
export class UsageError extends CliError {
  override readonly name = "UsageError";

  constructor(message: string, fix?: string) {
    super(message, { exitCode: exitCodes.usage, fix });
  }
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

/** Columns of a terminal; Infinity where the output is no terminal. */
export function terminalWidth({ isTTY, columns }: { isTTY?: boolean; columns?: number }): number {
  return isTTY === true && columns !== undefined && columns > 0 ? columns : Infinity;
}

/** Writes a note to standard error if the work takes longer than a second. */
export async function noteIfSlow<T>(io: Io, text: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => note(io, text), 1_000);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** Writes one line of data to standard output. */
export function print(io: Io, line: string): void {
  io.stdout.write(`${line}\n`);
}

export function printJson(io: Io, value: unknown): void {
  print(io, JSON.stringify(value, null, 2));
}

/** Writes one line to standard error, for everything that is not data. On a terminal, it is wrapped between words. */
export function note(io: Io, line: string): void {
  io.stderr.write(`${wrapWords(line, terminalWidth(io.stderr))}\n`);
}

/** Wraps the text between words to at most `columns` characters per line; a longer word stays whole. Wrapped lines keep their indentation. */
export function wrapWords(text: string, columns: number): string {
  const wrap = (line: string) => {
    const indent = /^ */.exec(line)?.[0] ?? "";
    const lines = [""];
    for (const word of line.slice(indent.length).split(" ")) {
      const longer = lines.at(-1) === "" ? word : `${lines.at(-1)} ${word}`;
      const fits = lines.at(-1) === "" || widthOf(indent + longer) <= columns;
      if (fits) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines.map((each) => indent + each).join("\n");
  };
  const lines = text.split("\n");
  return lines.map((line) => (widthOf(line) <= columns ? line : wrap(line))).join("\n");
}

function widthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** Standard input to its end as one text, without trailing line ends. */
export async function readAll(stdin: NodeJS.ReadableStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/[\r\n]+$/, "");
}

export function canAsk({ stdin, stdout }: Pick<Io, "stdin" | "stdout">): boolean {
  return stdin.isTTY && stdout.isTTY;
}

/** Asks on the terminal for one line; `hidden`: the answer is not shown. Returns an empty text after Ctrl-C or Ctrl-D. */
export async function ask(
  { stdin, stdout }: Pick<Io, "stdin" | "stdout">,
  question: string,
  { hidden = false } = {},
): Promise<string> {
  const output = hidden ? new Writable({ write: (_chunk, _encoding, done) => done() }) : stdout;
  const lines = createInterface({ input: stdin, output, terminal: true });
  // The terminal no longer echoes input, so an answer that is pasted immediately after the question is hidden too.
  if (hidden) stdout.write(question);
  const { promise, resolve } = Promise.withResolvers<string>();
  const endWithoutAnswer = (): void => {
    if (!hidden) stdout.write("\n");
    resolve("");
  };
  lines.once("close", endWithoutAnswer);
  lines.question(hidden ? "" : question, resolve);
  const answer = await promise;
  // Only this listener: readline's own one stops reading keys. Otherwise this interface would echo the answer to the next question.
  lines.off("close", endWithoutAnswer);
  lines.close();
  if (hidden) stdout.write("\n");
  return answer;
}

/** Asks on the terminal. True only for `y` or `yes`; an empty line, Ctrl-C and Ctrl-D are false. */
export async function confirm(io: Pick<Io, "stdin" | "stdout">, question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test((await ask(io, `${question} [y/N] `)).trim());
}

/** The version of this build. */
export function ownVersion(): string {
  const manifest = parseJson(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  if (typeof manifest === "object" && manifest !== null && "version" in manifest) return String(manifest.version);
  return "unknown";
}

/** `<path>: <message>` of the first problem; the path begins with `prefix`, if it is given. */
export function firstIssue({ issues: [issue] }: z.ZodError, ...prefix: readonly string[]): string {
  return `${[...prefix, ...(issue?.path ?? [])].join(".")}: ${issue?.message ?? "does not match"}`;
}
