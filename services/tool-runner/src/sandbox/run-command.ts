// Runs one command to its end with bounded output, processes and memory, and leaves no process of it running.
//
//   running ─→ exited
//           ─→ stopping (SIGTERM, killAfterMs later SIGKILL) ─→ exited       timeout, cancelled, output_limit …
// It does not know tools or the purpose of the command.
import { spawn, type StdioOptions } from "node:child_process";
import { setPriority } from "node:os";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { ControlGroup } from "./cgroup.ts";
import type { ExecLimits } from "./limits.ts";
import { childrenOf, killMarked, signalGroup, usageOf } from "../workspace/process-tree.ts";

export type StopReason =
  | "timeout"
  | "cancelled"
  | "output_limit"
  | "process_limit"
  | "memory_limit"
  | "workspace_full"
  | "disk_full";

export interface CommandSpec {
  /** The program and its arguments, including the sandbox's. */
  argv: readonly string[];
  /** Working directory on the host. */
  cwd: string;
  env: Record<string, string>;
  limits: ExecLimits;
  /** Keeps standard input open for `write`; otherwise it is empty. */
  interactive: boolean;
  group: ControlGroup | undefined;
  /** The sandbox ends all processes in it when its first process is killed. */
  sandboxed: boolean;
  /** `NAME=value` in the environment of everything the command starts. */
  mark: string;
  /** Reading pauses until a returned promise has settled. It must not reject. */
  onOutput(chunk: Buffer): Promise<void> | undefined;
}

export interface CommandEnd {
  /** Null when a signal ended it. */
  exitCode: number | null;
  signal: NodeJS.Signals | null;
  /** Why the service stopped it; undefined when it ended by itself. */
  stopReason: StopReason | undefined;
  durationMs: number;
}

/** Signals that a caller may send. */
type CommandSignal = "SIGTERM" | "SIGINT" | "SIGKILL";

export interface RunningCommand {
  /** Rejects when the command could not be started at all. */
  readonly ended: Promise<CommandEnd>;
  /** Ends it: SIGTERM first when the reason allows, SIGKILL `killAfterMs` later. The first reason counts. */
  readonly stop: (reason: StopReason) => void;
  /** Sends a signal to its process group (SIGKILL: to all its processes); false when none is left. */
  readonly signal: (signal: CommandSignal) => boolean;
  /** Writes to its standard input and closes it with `end`. Rejects when its input is closed or was never open. */
  readonly write: (text: string, end: boolean) => Promise<void>;
  /** Removes the output limit: its output is no longer stored in full. */
  readonly liftOutputLimit: () => void;
}

const watchIntervalMs = 250;
/** How long output is read after the end: what is left in the pipe, not what a background process prints. */
const lastOutputMs = 1_000;
/** Gives other work on the machine precedence. */
const niceness = 5;

/**
 * The first process: joins the group, becomes the first victim when memory runs out, merges both outputs into one pipe in the
 * order they are written, and becomes the command. `$1` = number of group files; they follow, then the command.
 */
const prelude = [
  "n=$1; shift",
  'while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n - 1)); done',
  "exec 2>&1",
  "{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null",
  'exec "$@"',
].join("\n");

/** Kills every process with the mark `$1` in its environment, including those that left the group or started meanwhile, then the group. */
const endMarked = [
  "cat <&3; exec 3<&-",
  "for round in 1 2 3 4 5; do",
  '  for each in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do each=${each#/proc/}; kill -KILL "${each%/environ}"; done',
  "done",
  "kill -KILL 0",
].join("\n");

/**
 * Without a sandbox, nothing would end the command when the service is killed. This reader of descriptor 3 does so when the writing
 * end closes. `$0` is the mark of all processes that the command starts; the reader itself does not carry it.
 */
export const parentDeathScript = [
  `/usr/bin/env -i PATH="$PATH" /bin/sh -c '${endMarked}' sh "$0" >/dev/null 2>&1 &`,
  "exec 3<&-",
  'exec "$@"',
].join("\n");

/** Starts the command. `ended` reports a failed start. */
export function startCommand(spec: CommandSpec): RunningCommand {
  const startedAt = performance.now();
  const inner = spec.sandboxed ? spec.argv : ["/bin/sh", "-c", parentDeathScript, spec.mark, ...spec.argv];
  const stdio: StdioOptions = [spec.interactive ? "pipe" : "ignore", "pipe", "ignore"];
  if (!spec.sandboxed) stdio.push("pipe");
  const joinFiles = spec.group?.joinFiles ?? [];
  const child = spawn("/bin/sh", ["-c", prelude, "sh", String(joinFiles.length), ...joinFiles, ...inner], {
    cwd: spec.cwd,
    env: spec.env,
    // The command gets its own session and process group.
    detached: true,
    stdio,
  });
  const exited = new Promise<Pick<CommandEnd, "exitCode" | "signal">>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  // A command may end before it has read its input.
  child.stdin?.on("error", () => undefined);
  const { pid, stdout } = child;
  if (pid === undefined || stdout === null) {
    const failed = exited.then(() => Promise.reject(new Error("the command could not be started")));
    return {
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
  const watch = setInterval(() => watchUsage(pid, spec, stopper), watchIntervalMs);
  const finish = async (): Promise<CommandEnd> => {
    try {
      const { exitCode, signal } = await exited;
      // Processes that the command left in the background end with it.
      signalGroup(pid, "SIGKILL");
      if (!spec.sandboxed) killMarked(spec.mark);
      await Promise.race([output.closed, delay(lastOutputMs)]);
      return { exitCode, signal, stopReason: stopper.reason, durationMs: performance.now() - startedAt };
    } finally {
      clearInterval(watch);
      stopper.end();
      stdout.destroy();
      child.stdin?.destroy();
      child.stdio[3]?.destroy();
    }
  };
  return {
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

/** `closed` resolves when no process holds the pipe open. */
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
  // The kernel's own counting is exact.
  if (spec.group !== undefined) return;
  // The sandbox and the shells count as processes, too.
  const maxProcesses = spec.limits.maxProcesses + 8;
  const usage = usageOf(pid, maxProcesses);
  if (usage.processes > maxProcesses) stopper.stop("process_limit");
  else if (usage.residentBytes > spec.limits.maxMemoryBytes) stopper.stop("memory_limit");
}

/** Ends a command with SIGTERM, then SIGKILL. The first reason counts. */
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
    // A command over its limits is killed immediately: it would go on consuming.
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

  /** A sandboxed command has its own process group inside. Signalling bubblewrap's group would end the command immediately. */
  signal(signal: CommandSignal): boolean {
    if (signal === "SIGKILL") return this.#kill();
    if (!this.#spec.sandboxed) return signalGroup(this.#pid, signal);
    const [first] = childrenOf(this.#pid);
    return first !== undefined && signalGroup(first, signal);
  }

  #kill(): boolean {
    const found = signalGroup(this.#pid, "SIGKILL");
    if (!this.#spec.sandboxed) killMarked(this.#spec.mark);
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
