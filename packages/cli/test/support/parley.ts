// Runs the real command as a child process, and waits for its output instead of a fixed time; or in the test's process.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

import { cliPrograms } from "@parley/testing/cli-programs";

import { runCommandLine } from "../../src/commands/index.ts";

const main = cliPrograms().parley;
const start = fileURLToPath(new URL("../../../../infra/local/src/main.ts", import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Run {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  readonly #waiters = new Set<() => void>();
  #heard = 0;
  #hasEnded = false;
  stdout = "";
  stderr = "";

  constructor(command: string, args: readonly string[], env: Record<string, string>, cwd = process.cwd()) {
    const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
    this.#child = spawn(command, args, { env: { PATH, HOME, NODE_COMPILE_CACHE, TERM: "xterm", ...env }, cwd });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      for (const look of this.#waiters) look();
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr += text));
    this.#ended = once(this.#child, "close").then(([code]) => {
      this.#hasEnded = true;
      for (const look of this.#waiters) look();
      return code as number | null;
    });
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  endInput(text = ""): this {
    this.#child.stdin?.end(text);
    return this;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves when standard output, without colours, matches the pattern after the previous match. */
  async says(pattern: RegExp): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = (): void => {
      const text = stripVTControlCharacters(this.stdout);
      const match = pattern.exec(text.slice(this.#heard));
      if (match !== null) {
        this.#heard += match.index + match[0].length;
        this.#waiters.delete(look);
        resolve();
      } else if (this.#hasEnded) reject(new Error(`it ended without ${pattern}:\n${text}\n${this.stderr}`));
    };
    this.#waiters.add(look);
    look();
    await promise;
  }

  async outcome(): Promise<Outcome> {
    const code = await this.#ended;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }
}

/** `parley <args>` on a data folder. */
export function parley(home: string, args: readonly string[], env: Record<string, string> = {}, cwd?: string): Run {
  const words = ["--conditions=@parley/source", main, ...args];
  return new Run(process.execPath, words, { PARLEY_HOME: home, ...env }, cwd);
}

/**
 * Runs `parley <args>` in the test's process and returns what a process would print: it takes a tenth of the processor time of a
 * process. For commands that end by themselves; a test of signals, terminals or slow pipes needs a process.
 */
export async function runParley(
  home: string,
  args: readonly string[],
  { env = {}, input = "", cwd = process.cwd() }: { env?: Record<string, string>; input?: string; cwd?: string } = {},
): Promise<Outcome & { readonly code: number }> {
  const texts = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof texts) =>
    new Writable({
      decodeStrings: false,
      write: (chunk: Buffer | string, _encoding, done) => {
        texts[name] += chunk.toString();
        done();
      },
    }) as NodeJS.WriteStream;
  const { PATH = "", HOME = "" } = process.env;
  const code = await runCommandLine(args, {
    stdin: Readable.from([input]) as unknown as NodeJS.ReadStream,
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    env: { PATH, HOME, TERM: "xterm", PARLEY_HOME: home, ...env },
    cwd,
  });
  return { code, ...texts };
}

/** `parley <args>` in a pseudo-terminal of util-linux's `script`. */
export function parleyOnTerminal(home: string, args: readonly string[], env: Record<string, string> = {}): Run {
  return onTerminal([main, ...args], { PARLEY_HOME: home, ...env });
}

/** `npm start` in a pseudo-terminal, without npm. */
export function startOnTerminal(home: string): Run {
  return onTerminal([start, "--home", home], {});
}

function onTerminal(words: readonly string[], env: Record<string, string>): Run {
  const command = [process.execPath, "--conditions=@parley/source", ...words].map((word) => `'${word}'`).join(" ");
  return new Run("script", ["-qefc", `stty cols 100 rows 40; ${command}`, "/dev/null"], { SHELL: "/bin/sh", ...env });
}
