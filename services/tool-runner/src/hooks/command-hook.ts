// Runs a hook's command to its end: a process of this service's user with its input on standard input, separate and limited stdout
// and stderr, and no remaining child processes.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { maxHookOutputBytes, type HookResult } from "@parley/contracts";
import { systemPath } from "../sandbox/executor.ts";
import { killMarked, signalGroup } from "../workspace/process-tree.ts";
import { parentDeathScript } from "../sandbox/run-command.ts";
import { safeVariables } from "../sandbox/program-folder.ts";
import { failed, parseAnswer, tooMuchOutput, tooSlow } from "./parse-response.ts";

export interface HookCommand {
  command: string;
  cwd: string;
  /** Added to PATH, LANG and the variables that keep Python safe; may override them. */
  variables: Record<string, string>;
  input: string;
  timeoutMs: number;
  /** Ends the command in the same way as the timeout. */
  signal: AbortSignal;
}

type StopReason = "timeout" | "output_limit" | "cancelled";

/** The exit code with which a command denies without printing JSON. */
const denyExitCode = 2;
/** Limit of standard error, which becomes a reason for the model or a log line. */
const maxErrorBytes = 8 * 1024;
/** How long to read the remaining output in the pipe after the exit. */
const lastOutputMs = 1_000;

/** `stderr`: the beginning of standard error. Throws when the shell cannot be started. */
export async function runHookCommand(spec: HookCommand): Promise<{ result: HookResult; stderr: string }> {
  const id = randomUUID();
  const child = spawn("/bin/sh", ["-c", parentDeathScript, `PARLEY_CALL=${id}`, "/bin/sh", "-c", spec.command], {
    cwd: spec.cwd,
    env: { PATH: systemPath, LANG: "C.UTF-8", ...safeVariables, ...spec.variables, PARLEY_CALL: id },
    // Creates a new session and process group.
    detached: true,
    stdio: ["pipe", "pipe", "pipe", "pipe"],
  });
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  const { pid, stdin, stdout, stderr } = child;
  if (pid === undefined) {
    await exited;
    throw new Error("the hook could not be started");
  }
  let stopped: StopReason | undefined;
  const kill = () => {
    signalGroup(pid, "SIGKILL");
    killMarked(`PARLEY_CALL=${id}`);
  };
  const stop = (reason: StopReason) => {
    stopped ??= reason;
    kill();
  };
  const output = collect(stdout, maxHookOutputBytes, () => stop("output_limit"));
  const errors = collect(stderr, maxErrorBytes);
  // A hook need not read its input.
  stdin.on("error", () => undefined);
  stdin.end(spec.input);
  const timer = setTimeout(() => stop("timeout"), spec.timeoutMs);
  const cancel = () => stop("cancelled");
  if (spec.signal.aborted) cancel();
  spec.signal.addEventListener("abort", cancel, { once: true });
  try {
    const exit = await exited;
    // Ends the hook's background processes as well.
    kill();
    await Promise.race([Promise.all([output.closed, errors.closed]), delay(lastOutputMs)]);
    const stderr = errors.text();
    if (stopped === "timeout") return { result: tooSlow(spec.timeoutMs), stderr };
    if (stopped === "output_limit") return { result: tooMuchOutput, stderr };
    return { result: resultOf(exit, output.text(), stderr.trim()), stderr };
  } finally {
    clearTimeout(timer);
    spec.signal.removeEventListener("abort", cancel);
    for (const stream of child.stdio) stream?.destroy();
  }
}

interface Exit {
  /** Null when a signal ended the command. */
  exitCode: number | null;
  signal: NodeJS.Signals | null;
}

function resultOf({ exitCode, signal }: Exit, stdout: string, reason: string): HookResult {
  if (exitCode === null) return failed(`it was killed by ${signal ?? "a signal"}`);
  if (exitCode === denyExitCode) {
    return { outcome: "answered", answer: { decision: "deny", ...(reason === "" ? {} : { reason }) } };
  }
  return exitCode === 0 ? parseAnswer(stdout) : failed(`it ended with exit code ${exitCode}`);
}

interface Collected {
  closed: Promise<void>;
  text(): string;
}

/** Stores the beginning of a stream and discards the rest up to its end. */
function collect(stream: Readable, maxBytes: number, onMore: () => void = () => undefined): Collected {
  const chunks: Buffer[] = [];
  let total = 0;
  stream.on("data", (chunk: Buffer) => {
    const room = maxBytes - total;
    if (room > 0) chunks.push(chunk.subarray(0, room));
    total += chunk.length;
    if (total > maxBytes) onMore();
  });
  const closed = new Promise<void>((resolve) => {
    stream.once("close", resolve);
    stream.once("error", () => resolve());
  });
  return { closed, text: () => Buffer.concat(chunks).toString("utf8") };
}
