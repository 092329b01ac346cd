// Runs one preparation command to its end: initdb, apt-get, ldd.

import { spawn, type SpawnOptions } from "node:child_process";

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  /** Written to the command's standard input, which is otherwise closed. */
  readonly input?: string;
}

/** Runs a command and returns its output. If it cannot be started, the code is null. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const spawnOptions: SpawnOptions = { stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"] };
  if (options.cwd !== undefined) spawnOptions.cwd = options.cwd;
  if (options.env !== undefined) spawnOptions.env = options.env;
  const child = spawn(command, args, spawnOptions);
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.once("error", (error) => resolve({ code: null, stdout, stderr: error.message }));
  child.once("close", (code) => resolve({ code, stdout, stderr }));
  if (options.input !== undefined) {
    child.stdin?.on("error", () => {}); // it ended before reading everything; its exit code is enough
    child.stdin?.end(options.input);
  }
  return promise;
}

/** The last lines of a command's output, for an error message. */
export function tail(outcome: Outcome, lines = 5): string {
  return `${outcome.stdout}\n${outcome.stderr}`
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-lines)
    .join("\n");
}
