// One private server process: start, readiness by its log line, stop, and cleanup of a process that a crashed owner left. Preparation
// commands, which run to their end: initdb, apt-get, ldd.

import { spawn, type SpawnOptions } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

import { omitUndefined } from "@parley/kit";

import { diskFullError, LocalError } from "../errors.ts";
import { endProcess, listenerOf, nameOf, type ProcessName } from "../processes.ts";

export type LogSink = (line: string) => void;

export interface ServerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServerProcess extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** The loopback TCP port it listens on. Pass it as `port` to restart at the same address. */
  readonly port: number;
  readonly dataDir: string;
  /** Resolves when the process has ended for any reason. Never rejects. */
  readonly exited: Promise<ServerExit>;
  /** The last lines of its log, at most 20. */
  lastLines(): string[];
  /** Stops it, and kills it after `graceMs` (default 10,000). Safe to call twice. */
  stop(graceMs?: number): Promise<void>;
  /** Sends a signal; after SIGKILL it resolves when the process has ended. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

export interface Launch {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  readonly port: number;
  readonly dataDir: string;
  /** Matches the log line that reports readiness. */
  readonly ready: RegExp;
  /** The signal for an orderly stop that does not wait for clients. */
  readonly stopSignal: "SIGINT" | "SIGTERM";
  readonly log?: LogSink | undefined;
  /** Timeout of the start, in milliseconds; recovery of a large database takes long. Default: 120,000. */
  readonly readyTimeoutMs?: number;
}

const pidFile = "server.pid";
const maxOutputLines = 20;
const defaultGraceMs = 10_000;

/** Starts the server and resolves when its log reports readiness. */
export async function launch(options: Launch): Promise<ServerProcess> {
  const { name, dataDir, port, stopSignal } = options;
  const [command, args] = await dyingWithUs(options.command, options.args, stopSignal);
  // A separate session: Ctrl-C in the terminal goes only to the supervisor, which stops the servers last.
  const child = spawn(command, args, {
    cwd: dataDir,
    env: options.env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });

  const kept: string[] = [];
  const ready = Promise.withResolvers<void>();
  const onLine = (line: string): void => {
    kept.push(line);
    if (kept.length > maxOutputLines) kept.shift();
    options.log?.(line);
    if (options.ready.test(line)) ready.resolve();
  };
  for (const stream of [child.stdout, child.stderr]) readLines(stream, onLine);

  const exit = Promise.withResolvers<ServerExit>();
  child.once("error", (error) => {
    kept.push(error.message);
    exit.resolve({ code: null, signal: null });
  });
  child.once("close", (code, signal) => exit.resolve({ code, signal }));
  const exited = exit.promise;

  const identity = child.pid === undefined ? null : nameOf(child.pid);
  if (identity !== null) writePidFile(dataDir, identity);

  const send = (signal: NodeJS.Signals): boolean => child.kill(signal);
  const stop = async (graceMs = defaultGraceMs): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      send(stopSignal);
      send("SIGCONT"); // a stopped process would not handle the signal
      const force = setTimeout(() => send("SIGKILL"), graceMs);
      await exited;
      clearTimeout(force);
    }
    await exited;
    rmSync(join(dataDir, pidFile), { force: true });
  };

  const timeout = setTimeout(() => ready.reject(new Error("timeout")), options.readyTimeoutMs ?? 120_000);
  try {
    await Promise.race([ready.promise, exited.then(() => Promise.reject(new Error("exited")))]);
  } catch {
    await stop();
    throw failure(name, port, dataDir, kept);
  } finally {
    clearTimeout(timeout);
  }

  return {
    name,
    pid: child.pid ?? 0,
    port,
    dataDir,
    exited,
    lastLines: () => [...kept],
    stop,
    kill: async (signal) => {
      send(signal);
      if (signal === "SIGKILL") await exited;
    },
    [Symbol.asyncDispose]: () => stop(),
  };
}

/** Stops a server that a killed owner left running on this data folder. */
export async function endOrphanedServer(dataDir: string, stopSignal: "SIGINT" | "SIGTERM"): Promise<void> {
  const path = join(dataDir, pidFile);
  const left = readPidFile(path);
  if (left === null) return;
  await endProcess(left, stopSignal, defaultGraceMs);
  rmSync(path, { force: true });
}

/** Writes the file by which a later start finds a leftover server. On a full disk, the server runs without it. */
function writePidFile(dataDir: string, identity: ProcessName): void {
  try {
    writeFileSync(join(dataDir, pidFile), JSON.stringify(identity), { mode: 0o600 });
  } catch {
    // The kernel ends the server with its owner in any case.
  }
}

function readPidFile(path: string): ProcessName | null {
  try {
    const { pid, started } = JSON.parse(readFileSync(path, "utf8")) as Partial<ProcessName>;
    return typeof pid === "number" && typeof started === "string" ? { pid, started } : null;
  } catch {
    return null;
  }
}

let canDieWithUs: Promise<boolean> | undefined;

/** Adds a parent-death signal with `setpriv`, if available, so that the kernel ends the server after a kill -9 of its owner. */
async function dyingWithUs(
  command: string,
  args: readonly string[],
  stopSignal: string,
): Promise<[string, readonly string[]]> {
  const pdeathsig = ["--pdeathsig", stopSignal.replace("SIG", "")];
  canDieWithUs ??= run("setpriv", [...pdeathsig, "true"]).then((outcome) => outcome.code === 0);
  if (!(await canDieWithUs)) return [command, args];
  // A new user namespace clears the parent-death signal, so `setpriv` runs inside the wrapper that creates it.
  const inner = args.indexOf("--");
  if (inner === -1) return ["setpriv", [...pdeathsig, "--", command, ...args]];
  return [command, [...args.slice(0, inner + 1), "setpriv", ...pdeathsig, "--", ...args.slice(inner + 1)]];
}

function readLines(stream: Readable, onLine: LogSink): void {
  createInterface({ input: stream, crlfDelay: Infinity }).on("line", onLine);
}

function failure(name: string, port: number, dataDir: string, lines: readonly string[]): LocalError {
  const output = lines.join("\n");
  if (/address already in use/i.test(output)) {
    const holder = listenerOf(port);
    return new LocalError("port_taken", `Port ${port} for ${name} is taken${holder === null ? "" : ` by ${holder}`}.`);
  }
  if (/no space left on device/i.test(output)) return diskFullError(dataDir);
  return new LocalError(
    "server_failed",
    `${name} did not start. Its last lines:\n${lines.slice(-8).join("\n") || "(none)"}`,
  );
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Written to the command's standard input, which is otherwise closed. */
  readonly input?: string;
}

/** Runs a command and returns its output. If it cannot be started, the code is null. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const { input, cwd, env } = options;
  const stdin = input === undefined ? "ignore" : "pipe";
  const child = spawn(command, args, {
    ...omitUndefined({ cwd, env }),
    stdio: [stdin, "pipe", "pipe"],
  } as SpawnOptions);
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.once("error", (error) => resolve({ code: null, stdout, stderr: error.message }));
  child.once("close", (code) => resolve({ code, stdout, stderr }));
  if (input !== undefined) {
    child.stdin?.on("error", () => {}); // it ended before reading everything; its exit code is enough
    child.stdin?.end(input);
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
