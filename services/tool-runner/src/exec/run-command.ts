// Runs one command to its end, whatever it does: bounded in output, processes and memory; nothing of it is left behind.
//
//   running ─→ exited
//           ─→ stopping (SIGTERM, killAfterMs later SIGKILL) ─→ exited       timeout, cancelled, output_limit …
// It does not know tools, nor what the command is for.
import { spawn, type ChildProcess, type StdioOptions } from "node:child_process";
import { setPriority } from "node:os";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { ControlGroup } from "./cgroup.ts";
import type { ExecLimits } from "./limits.ts";
import { childrenOf, killMarked, signalGroup, usageOf } from "./process-tree.ts";

export type StopReason =
  | "timeout"
  | "cancelled"
  | "output_limit"
  | "process_limit"
  | "memory_limit"
  | "workspace_full"
  | "disk_full";

export interface CommandSpec {
  /** The program and its arguments, the wall included. */
  argv: readonly string[];
  /** Working directory outside the wall. */
  cwd: string;
  env: Record<string, string>;
  limits: ExecLimits;
  /** Its standard input stays open for `write`; else it is empty. */
  interactive: boolean;
  group: ControlGroup | undefined;
  /** The wall ends everything behind it when its first process is killed. */
  walled: boolean;
  /** `NAME=value` in the environment of everything the command starts. */
  mark: string;
  /** Whether it has taken too much of the disk; asked again and again, never twice at a time. */
  overfull(): Promise<StopReason | undefined>;
  /** Nothing more is read until a returned promise has settled. It must not reject. */
  onOutput(chunk: Buffer): Promise<void> | undefined;
}

export interface CommandEnd {
  /** Null when a signal ended it. */
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  /** Why we stopped it; undefined when it ended by itself. */
  stopped: StopReason | undefined;
  durationMs: number;
}

/** What a command may be told from outside. */
type CommandSignal = "SIGTERM" | "SIGINT" | "SIGKILL";

export interface RunningCommand {
  /** Its first process; undefined when it could not be started. */
  readonly pid: number | undefined;
  /** Rejects when the command could not be started at all. */
  readonly ended: Promise<CommandEnd>;
  /** Ends it: asks first where there is time for that, insists `killAfterMs` later. The first reason counts. */
  readonly stop: (reason: StopReason) => void;
  /** Sends a signal to its process group (SIGKILL: to all of it); false when nobody is left. */
  readonly signal: (signal: CommandSignal) => boolean;
  /** Writes to its standard input, and closes that with `end`. Rejects when it takes no input, or none any more. */
  readonly write: (text: string, end: boolean) => Promise<void>;
  /** From now on it may print as much as it likes: nobody keeps it all. */
  readonly liftOutputLimit: () => void;
}

const watchIntervalMs = 250;
/** How long output may still come after the end: what is in the pipe, not what a background process says. */
const lastOutputMs = 1_000;
/** Lets the machine's other work go first. */
const niceness = 5;

/**
 * The first process: joins the group, offers itself to the kernel when memory runs out, sends both outputs down one pipe in
 * the order they are written, and becomes the command. `$1` = number of group files; they follow, then the command.
 */
const prelude = [
  "n=$1; shift",
  'while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n - 1)); done',
  "exec 2>&1",
  "{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null",
  'exec "$@"',
].join("\n");

/** Ends every process with the mark `$1` in its environment, those that left the group and those started meanwhile, then the group. */
const endMarked = [
  "cat <&3; exec 3<&-",
  "for round in 1 2 3 4 5; do",
  '  for each in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do each=${each#/proc/}; kill -KILL "${each%/environ}"; done',
  "done",
  "kill -KILL 0",
].join("\n");

/**
 * Without a wall nothing ends the command when the service is killed: a reader of descriptor 3 does, when its writer is gone. `$0` is
 * the mark of all that the command starts; the reader itself is without it.
 */
export const lifeline = [
  `/usr/bin/env -i PATH="$PATH" /bin/sh -c '${endMarked}' sh "$0" >/dev/null 2>&1 &`,
  "exec 3<&-",
  'exec "$@"',
].join("\n");

/** Starts it. What goes wrong at the start is told by `ended`. */
export function startCommand(spec: CommandSpec): RunningCommand {
  const startedAt = performance.now();
  const joinFiles = spec.group?.joinFiles ?? [];
  const inner = spec.walled ? spec.argv : ["/bin/sh", "-c", lifeline, spec.mark, ...spec.argv];
  const stdio: StdioOptions = [spec.interactive ? "pipe" : "ignore", "pipe", "ignore"];
  if (!spec.walled) stdio.push("pipe");
  const child = spawn("/bin/sh", ["-c", prelude, "sh", String(joinFiles.length), ...joinFiles, ...inner], {
    cwd: spec.cwd,
    env: spec.env,
    // A session and process group of its own.
    detached: true,
    stdio,
  });
  const exited = new Promise<Pick<CommandEnd, "exitCode" | "signal">>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  // One that ended before it read its input is no error of ours.
  child.stdin?.on("error", () => undefined);
  const { pid, stdout } = child;
  if (pid === undefined || stdout === null) {
    const failed = exited.then(() => Promise.reject(new Error("the command could not be started")));
    return {
      pid: undefined,
      ended: failed,
      stop: () => undefined,
      signal: () => false,
      write: () => Promise.reject(new Error("it was not started")),
      liftOutputLimit: () => undefined,
    };
  }
  lowerPriority(pid);
  const stopper = new Stopper(pid, spec);
  const output = collect(stdout, spec, stopper);
  const watchDisk = diskWatch(spec, stopper);
  const watch = setInterval(() => {
    watchUsage(pid, spec, stopper);
    watchDisk();
  }, watchIntervalMs);
  const finish = async (): Promise<CommandEnd> => {
    try {
      const { exitCode, signal } = await exited;
      // What was left in the background goes with the command.
      signalGroup(pid, "SIGKILL");
      if (!spec.walled) killMarked(spec.mark);
      await Promise.race([output.closed, delay(lastOutputMs)]);
      return { exitCode, signal, stopped: stopper.reason, durationMs: performance.now() - startedAt };
    } finally {
      clearInterval(watch);
      stopper.end();
      stdout.destroy();
      child.stdin?.destroy();
      cutLifeline(child);
    }
  };
  return {
    pid,
    ended: finish(),
    stop: (reason) => stopper.stop(reason),
    signal: (signal) => stopper.signal(signal),
    write: (text, end) => writeInput(child.stdin, text, end),
    liftOutputLimit: output.liftLimit,
  };
}

function writeInput(stdin: Writable | null, text: string, end: boolean): Promise<void> {
  if (stdin === null || !stdin.writable) return Promise.reject(new Error("it takes no input"));
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null) => (error == null ? resolve() : reject(error));
    if (end) stdin.end(text, () => done(stdin.errored));
    else stdin.write(text, done);
  });
}

/** `closed` resolves when nobody holds the pipe any more. */
function collect(
  stdout: Readable,
  spec: CommandSpec,
  stopper: Stopper,
): { closed: Promise<void>; liftLimit: () => void } {
  let total = 0;
  let limit = spec.limits.maxOutputBytes;
  stdout.on("data", (chunk: Buffer) => {
    const room = limit - total;
    total += chunk.length;
    const busy = room > 0 ? spec.onOutput(chunk.length <= room ? chunk : chunk.subarray(0, room)) : undefined;
    if (busy !== undefined) {
      stdout.pause();
      void busy.finally(() => stdout.resume());
    }
    if (total > limit) stopper.stop("output_limit");
  });
  const closed = new Promise<void>((resolve) => {
    stdout.once("close", resolve);
    stdout.once("error", () => resolve());
  });
  return { closed, liftLimit: () => (limit = Number.POSITIVE_INFINITY) };
}

function watchUsage(pid: number, spec: CommandSpec, stopper: Stopper): void {
  // The kernel counts better than we do.
  if (spec.group !== undefined) return;
  // The wall and the shells are processes too.
  const maxProcesses = spec.limits.maxProcesses + 8;
  const usage = usageOf(pid, maxProcesses);
  if (usage.processes > maxProcesses) stopper.stop("process_limit");
  else if (usage.residentBytes > spec.limits.maxMemoryBytes) stopper.stop("memory_limit");
}

function diskWatch(spec: CommandSpec, stopper: Stopper): () => void {
  let looking = false;
  return () => {
    if (looking) return;
    looking = true;
    spec
      .overfull()
      .then((reason) => reason !== undefined && stopper.stop(reason))
      // A disk that does not answer stops no command.
      .catch(() => undefined)
      .finally(() => (looking = false));
  };
}

/** Ends a command: first asks, then insists. The first reason counts. */
class Stopper {
  readonly #pid: number;
  readonly #spec: CommandSpec;
  #reason: StopReason | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(pid: number, spec: CommandSpec) {
    this.#pid = pid;
    this.#spec = spec;
  }

  get reason(): StopReason | undefined {
    return this.#reason;
  }

  stop(reason: StopReason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    // Who takes too much is not asked: it would go on taking.
    if (reason !== "timeout" && reason !== "cancelled") {
      this.#kill();
      return;
    }
    if (!this.signal("SIGTERM")) this.#kill();
    this.#timer = setTimeout(() => this.#kill(), this.#spec.limits.killAfterMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  /** A walled command has a process group of its own behind the wall; signalling the wall's own would end it at once. */
  signal(signal: CommandSignal): boolean {
    if (signal === "SIGKILL") return this.#kill();
    if (!this.#spec.walled) return signalGroup(this.#pid, signal);
    const [first] = childrenOf(this.#pid);
    return first !== undefined && signalGroup(first, signal);
  }

  #kill(): boolean {
    const found = signalGroup(this.#pid, "SIGKILL");
    if (!this.#spec.walled) killMarked(this.#spec.mark);
    return found;
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, niceness);
  } catch {
    // It has ended already.
  }
}

function cutLifeline(child: ChildProcess): void {
  child.stdio[3]?.destroy();
}
