// A real pseudo-terminal with a screen: util-linux's `script` runs the program, and xterm's emulator draws its output and answers its
// queries.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { onPath } from "@parley/local";
import { cliPrograms } from "@parley/testing/cli-programs";
import xterm from "@xterm/headless";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

const script = onPath("script");
/** For the option `skip` of tests: why there is no terminal here, or false. */
export const withoutTerminals = script === null ? "there is no `script` here to make a terminal with" : false;

/** The smallest terminal on which everything has to be readable. */
export const narrow: TerminalSize = { columns: 80, rows: 24 };
export const wide: TerminalSize = { columns: 200, rows: 50 };
const sizes: Readonly<Record<string, TerminalSize>> = { "80x24": narrow, "200x50": wide };

/** Declares a test for each size of a terminal. */
export function testAtBothSizes(name: string, run: (size: TerminalSize) => Promise<void>): void {
  for (const [at, size] of Object.entries(sizes)) test(`${name} at ${at}`, { skip: withoutTerminals }, () => run(size));
}

export class TestTerminal implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #emulator: InstanceType<typeof xterm.Terminal>;
  readonly #folder = mkdtempSync(join(tmpdir(), "parley-terminal-"));
  readonly #waiters = new Set<() => void>();
  readonly #ended: Promise<number | null>;
  #hasEnded = false;

  /** `command`: words for the shell. */
  constructor(command: readonly string[], size: TerminalSize, env: Record<string, string> = {}, cwd?: string) {
    const { columns, rows } = size;
    this.#emulator = new xterm.Terminal({ cols: columns, rows, scrollback: 2_000, allowProposedApi: true });
    const words = command.map((word) => `'${word}'`).join(" ");
    const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
    this.#child = spawn(
      script ?? "script",
      ["-qefc", `tty > '${this.#ttyFile}'; stty cols ${columns} rows ${rows}; ${words}`, "/dev/null"],
      {
        env: { PATH, HOME, NODE_COMPILE_CACHE, TERM: "xterm-256color", SHELL: "/bin/sh", ...env },
        ...(cwd === undefined ? {} : { cwd }),
      },
    );
    this.#child.stdout?.on("data", (data: Buffer) => this.#emulator.write(data, () => this.#look()));
    // The emulator answers the queries of the program, as a terminal does.
    this.#emulator.onData((data) => this.type(data));
    this.#child.stdin?.on("error", () => undefined);
    this.#ended = once(this.#child, "close").then(async ([code]) => {
      // The emulator draws what the program wrote last asynchronously.
      await new Promise<void>((drawn) => this.#emulator.write("", drawn));
      this.#hasEnded = true;
      this.#look();
      return code as number | null;
    });
  }

  get #ttyFile(): string {
    return join(this.#folder, "tty");
  }

  #look(): void {
    for (const look of this.#waiters) look();
  }

  /** What is on the screen. */
  get screen(): string {
    const { active } = this.#emulator.buffer;
    return this.#lines(active.baseY, active.baseY + this.#emulator.rows);
  }

  /** The screen and everything above it. */
  get all(): string {
    return this.#lines(0, this.#emulator.buffer.active.length);
  }

  #lines(from: number, to: number): string {
    const { active } = this.#emulator.buffer;
    const lines: string[] = [];
    for (let row = from; row < to; row += 1) lines.push((active.getLine(row)?.translateToString(true) ?? "").trimEnd());
    return lines.join("\n").trimEnd();
  }

  /** True if a cell of this text on the screen has a colour of its own. */
  isColoured(text: string): boolean {
    const { active } = this.#emulator.buffer;
    for (let row = active.baseY; row < active.baseY + this.#emulator.rows; row += 1) {
      const line = active.getLine(row);
      const column = line?.translateToString(true).indexOf(text) ?? -1;
      if (column >= 0) return line?.getCell(column)?.isFgDefault() === false;
    }
    return false;
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** As a terminal sends a paste. */
  paste(text: string): void {
    this.type(`\u001B[200~${text}\u001B[201~`);
  }

  /** Types a message of several lines and sends it. */
  send(...lines: readonly string[]): void {
    this.type(`${lines.join("\u001B\r")}\r`);
  }

  async resize({ columns, rows }: TerminalSize): Promise<void> {
    this.#emulator.resize(columns, rows);
    const tty = readFileSync(this.#ttyFile, "utf8").trim();
    await once(spawn("stty", ["-F", tty, "cols", String(columns), "rows", String(rows)]), "close");
  }

  /** Resolves when the screen matches. Rejects when the program ends before. */
  async shows(pattern: RegExp): Promise<void> {
    await this.#until(() => pattern.test(this.screen), `it does not show ${pattern}`);
  }

  /** Resolves when the screen no longer matches. */
  async hides(pattern: RegExp): Promise<void> {
    await this.#until(() => !pattern.test(this.screen), `it still shows ${pattern}`);
  }

  async #until(isTrue: () => boolean, failure: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = (): void => {
      if (isTrue()) resolve();
      else if (this.#hasEnded) reject(new Error(`${failure}, and it has ended:\n${this.all}`));
    };
    this.#waiters.add(look);
    const slow = setTimeout(() => reject(new Error(`${failure}:\n${this.screen}`)), 60_000);
    look();
    try {
      await promise;
    } finally {
      clearTimeout(slow);
      this.#waiters.delete(look);
    }
  }

  /** The exit code, when the program has ended. */
  async ended(): Promise<number | null> {
    return this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#hasEnded) this.#child.kill("SIGKILL");
    await this.#ended;
    this.#emulator.dispose();
    if (existsSync(this.#folder)) rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** `parley <args>` on a data folder, on a terminal. */
export function parleyTerminal(
  home: string,
  args: readonly string[],
  size: TerminalSize = narrow,
  cwd?: string,
): TestTerminal {
  const command = [process.execPath, "--conditions=@parley/source", cliPrograms().parley, ...args];
  return new TestTerminal(command, size, { PARLEY_HOME: home }, cwd);
}
