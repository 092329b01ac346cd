// Runs one command to its end, whatever it does: bounded in time, output, processes and memory; nothing of it is left behind.
//
//   running ─→ exited
//           ─→ stopping (SIGTERM, killAfterMs later SIGKILL) ─→ exited       timeout, cancelled, output_limit …
// It does not know tools, nor what the command is for.
import { spawn, type ChildProcess } from "node:child_process";
import { setPriority } from "node:os";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { ControlGroup } from "./cgroup.ts";
import type { ExecLimits } from "./limits.ts";
import { childrenOf, killMarked, signalGroup, usageOf } from "./process-tree.ts";

export type StopReason = "timeout" | "cancelled" | "output_limit" | "process_limit" | "memory_limit";

export interface CommandSpec {
  /** The program and its arguments, the wall included. */
  argv: readonly string[];
  /** Working directory outside the wall. */
  cwd: string;
  env: Record<string, string>;
  limits: ExecLimits;
  timeoutMs: number;
  signal: AbortSignal;
  group: ControlGroup | undefined;
  /** The wall ends everything behind it when its first process is killed. */
  walled: boolean;
  /** `NAME=value` in the environment of everything the command starts. */
  mark: string;
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

/** Without a wall nothing ends the command when the service is killed: a reader of descriptor 3 does, when its writer is gone. */
export const lifeline = '{ cat <&3; kill -KILL 0; } >/dev/null 2>&1 &\nexec 3<&-\nexec "$@"';

/** Throws when the command cannot be started at all. */
export async function runCommand(spec: CommandSpec): Promise<CommandEnd> {
  const startedAt = performance.now();
  const joinFiles = spec.group?.joinFiles ?? [];
  const inner = spec.walled ? spec.argv : ["/bin/sh", "-c", lifeline, "sh", ...spec.argv];
  const child = spawn("/bin/sh", ["-c", prelude, "sh", String(joinFiles.length), ...joinFiles, ...inner], {
    cwd: spec.cwd,
    env: spec.env,
    // A session and process group of its own.
    detached: true,
    stdio: ["ignore", "pipe", "ignore", ...(spec.walled ? [] : ["pipe" as const])],
  });
  const exited = new Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  const { pid, stdout } = child;
  if (pid === undefined || stdout === null) {
    await exited;
    throw new Error("the command could not be started");
  }
  lowerPriority(pid);
  const stopper = new Stopper(pid, spec);
  const closed = collect(stdout, spec, stopper);
  const timer = setTimeout(() => stopper.stop("timeout"), spec.timeoutMs);
  const watch = setInterval(() => watchUsage(pid, spec, stopper), watchIntervalMs);
  const abort = () => stopper.stop("cancelled");
  if (spec.signal.aborted) abort();
  spec.signal.addEventListener("abort", abort, { once: true });
  try {
    const { exitCode, signal } = await exited;
    // What was left in the background goes with the command.
    signalGroup(pid, "SIGKILL");
    if (!spec.walled) killMarked(spec.mark);
    await Promise.race([closed, delay(lastOutputMs)]);
    return { exitCode, signal, stopped: stopper.reason, durationMs: performance.now() - startedAt };
  } finally {
    clearTimeout(timer);
    clearInterval(watch);
    spec.signal.removeEventListener("abort", abort);
    stopper.end();
    stdout.destroy();
    cutLifeline(child);
  }
}

/** Resolves when the pipe is closed: nobody holds it any more. */
function collect(stdout: Readable, spec: CommandSpec, stopper: Stopper): Promise<void> {
  let total = 0;
  stdout.on("data", (chunk: Buffer) => {
    const room = spec.limits.maxOutputBytes - total;
    total += chunk.length;
    const busy = room > 0 ? spec.onOutput(chunk.length <= room ? chunk : chunk.subarray(0, room)) : undefined;
    if (busy !== undefined) {
      stdout.pause();
      void busy.finally(() => stdout.resume());
    }
    if (total > spec.limits.maxOutputBytes) stopper.stop("output_limit");
  });
  return new Promise((resolve) => {
    stdout.once("close", resolve);
    stdout.once("error", () => resolve());
  });
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
    this.#askToEnd();
    this.#timer = setTimeout(() => this.#kill(), this.#spec.limits.killAfterMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  /** A walled command has a process group of its own behind the wall; killing the wall's own would leave no time to end. */
  #askToEnd(): void {
    if (!this.#spec.walled) {
      signalGroup(this.#pid, "SIGTERM");
      return;
    }
    const [first] = childrenOf(this.#pid);
    if (first === undefined || !signalGroup(first, "SIGTERM")) this.#kill();
  }

  #kill(): void {
    signalGroup(this.#pid, "SIGKILL");
    if (!this.#spec.walled) killMarked(this.#spec.mark);
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
