// One replica of a service: starts its process, receives `ready` over IPC, and restarts the process after an exit.
//
//   starting ──ready──▶ ready          stop() in any state: SIGTERM, then SIGKILL if the drain takes too long ──▶ stopped
//      ▲  │               │
//      │  └─────exit──────┤            The first start differs: a wrong configuration (exit 78) or three exits in a row
//      └──── waiting ◀────┘            reject `firstReady` without a retry.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

import type { ServiceName } from "@parley/contracts";
import { backoffMs } from "@parley/kit";
import { z } from "zod";

import { LocalError } from "../errors.ts";
import type { ReplicaState } from "../home.ts";
import { nameOf } from "../processes.ts";
import { whenStuck } from "./liveness.ts";
import { LogFile, type WriteFailureReporter } from "./log-file.ts";

/**
 * Node sizes the young generation by the machine's memory, and a start fills it. The former limit of 16 MiB saves about 70 MiB per
 * service.
 */
const nodeFlags = ["--conditions=@parley/source", "--max-semi-space-size=4"];
/**
 * Fewer heaps of the C library than the eight per processor of its default, which saves 4 to 8 MiB per service. A fixed limit from which an
 * allocation is a mapping of its own (its default grows with the largest buffer freed) saves 2 to 4 MiB: such buffers are returned immediately.
 */
const memoryEnv = { MALLOC_ARENA_MAX: "2", MALLOC_MMAP_THRESHOLD_: "131072" };
/** The chassis exits with this code when the configuration is wrong: a retry would not help. */
const configExitCode = 78;
const firstStartTries = 3;
const firstReadyTimeoutMs = 60_000;
const lastOutputMs = 500;

const ReadySchema = z.object({ type: z.literal("ready"), healthPort: z.int(), httpPort: z.int().optional() });
const WaitingSchema = z.object({ type: z.literal("waiting"), subject: z.string(), reason: z.string() });

export interface ReplicaOptions {
  readonly service: ServiceName;
  readonly number: number;
  /** The script to run. */
  readonly entry: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly logPath: string;
  /** The HTTP port, or null. */
  readonly httpPort: number | null;
  /** Called with each line of its output. */
  readonly onLine: ((replica: string, line: string) => void) | undefined;
  /** Called whenever `state()` has changed. */
  readonly onChange: () => void;
  /** Called after an unexpected exit, before the restart. */
  readonly onUnexpectedExit: (replica: string, how: string, delayMs: number) => void;
  /** Called with each new reason that delays its start. */
  readonly onWaiting: (replica: string, subject: string, reason: string) => void;
  /** Receives write failures of the log. */
  readonly writeFailures: WriteFailureReporter;
}

/** What the cluster needs from a replica, however it runs. */
export type ReplicaHandle = Pick<
  Replica,
  "service" | "number" | "firstReady" | "state" | "whenReady" | "kill" | "restart" | "stop"
>;

export class Replica {
  readonly service: ServiceName;
  readonly number: number;
  readonly name: string;
  /** Resolves when it is ready for the first time; rejects with its last output if it cannot start. */
  readonly firstReady: Promise<void>;
  readonly #options: ReplicaOptions;
  readonly #log: LogFile;
  readonly #backoff = new Backoff();
  readonly #first = Promise.withResolvers<void>();
  #phase: "starting" | "ready" | "waiting" | "stopped" = "starting";
  #stopping = false;
  #everReady = false;
  #child: ChildProcess | null = null;
  #outputEnded: Promise<void> = Promise.resolve();
  #state: ReplicaState;
  #waiters: (() => void)[] = [];
  #startTimer: NodeJS.Timeout | undefined;
  readonly #readyTimer: NodeJS.Timeout;
  #probe: AbortController | undefined;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.service = options.service;
    this.number = options.number;
    this.name = `${options.service}-${options.number}`;
    this.#log = new LogFile(options.logPath, { writeFailures: options.writeFailures });
    this.#state = {
      service: this.service,
      name: this.name,
      number: this.number,
      process: null,
      ready: false,
      startedAt: null,
      restarts: 0,
      httpPort: options.httpPort,
      healthPort: null,
    };
    this.firstReady = this.#first.promise;
    this.firstReady.catch(() => {}); // callers that wait for it handle the rejection
    this.#readyTimer = setTimeout(
      () => this.#giveUp(`was not ready after ${firstReadyTimeoutMs / 1000} s`),
      firstReadyTimeoutMs,
    );
    this.#start();
  }

  state(): ReplicaState {
    return { ...this.#state };
  }

  /** Resolves when it is ready, now or after its next start. */
  async whenReady(): Promise<void> {
    if (this.#phase === "ready") return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push(resolve);
    await promise;
  }

  /** Sends a signal; after SIGKILL it resolves when the process has ended. False if there is no process. */
  async kill(signal: NodeJS.Signals): Promise<boolean> {
    const child = this.#child;
    if (child === null || hasEnded(child)) return false;
    const exited = once(child, "exit");
    child.kill(signal);
    if (signal === "SIGKILL") await exited;
    return true;
  }

  /** Drains the process and resolves when its successor is ready. */
  async restart(): Promise<void> {
    const successor = Promise.withResolvers<void>();
    this.#child?.once("exit", () => this.#waiters.push(successor.resolve));
    if (!(await this.kill("SIGTERM"))) this.#waiters.push(successor.resolve);
    await successor.promise;
  }

  /** Stops it without a restart, after a drain of at most `drainMs`; 0: kills it immediately. */
  async stop(drainMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#startTimer);
    clearTimeout(this.#readyTimer);
    this.#probe?.abort();
    const child = this.#child;
    if (child !== null && !hasEnded(child)) {
      const exited = once(child, "exit");
      child.kill(drainMs === 0 ? "SIGKILL" : "SIGTERM");
      child.kill("SIGCONT"); // a stopped process would not handle the signal
      const force = setTimeout(() => child.kill("SIGKILL"), drainMs);
      await exited;
      clearTimeout(force);
      await this.#lastOutput();
    }
    this.#phase = "stopped";
    this.#log[Symbol.dispose]();
  }

  #start(): void {
    const { entry, env, cwd, onChange } = this.#options;
    this.#phase = "starting";
    const begun = performance.now();
    // A separate session: Ctrl-C in the terminal goes only to the supervisor, which drains the services in order.
    const child = spawn(process.execPath, [...nodeFlags, entry], {
      cwd,
      env: { ...memoryEnv, ...env },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true,
    });
    this.#child = child;
    this.#state = {
      ...this.#state,
      process: child.pid === undefined ? null : nameOf(child.pid),
      ready: false,
      startedAt: new Date().toISOString(),
      healthPort: null,
    };
    onChange();
    for (const stream of [child.stdout, child.stderr]) this.#follow(stream);
    child.on("message", (message) => this.#onMessage(message));
    const closed = Promise.withResolvers<void>();
    child.once("close", () => closed.resolve());
    this.#outputEnded = closed.promise;
    // "exit" instead of "close": a child of the process may keep the streams open.
    child.once("exit", (code, signal) => this.#onExit(code, signal, performance.now() - begun));
    child.once("error", (error) => {
      this.#log.write(Buffer.from(`${error.message}\n`));
      if (child.pid === undefined) this.#onExit(null, null, performance.now() - begun);
    });
  }

  #onMessage(message: unknown): void {
    const waiting = WaitingSchema.safeParse(message);
    if (waiting.success) this.#options.onWaiting(this.name, waiting.data.subject, waiting.data.reason);
    const ready = ReadySchema.safeParse(message);
    if (!ready.success || this.#stopping) return;
    this.#phase = "ready";
    this.#everReady = true;
    clearTimeout(this.#readyTimer);
    const { healthPort, httpPort } = ready.data;
    this.#watchLiveness(healthPort);
    this.#state = { ...this.#state, ready: true, healthPort, httpPort: httpPort ?? this.#state.httpPort };
    this.#first.resolve();
    for (const resolve of this.#waiters.splice(0)) resolve();
    this.#options.onChange();
  }

  #onExit(code: number | null, signal: NodeJS.Signals | null, livedMs: number): void {
    this.#child = null;
    this.#probe?.abort();
    this.#state = { ...this.#state, process: null, ready: false, healthPort: null };
    if (this.#stopping) return;
    this.#phase = "waiting";
    this.#options.onChange();
    const how = signal === null ? `exit code ${code}` : signal;
    if (!this.#everReady && code === configExitCode) return this.#giveUp("has an invalid configuration");
    if (!this.#everReady && this.#state.restarts + 1 >= firstStartTries)
      return this.#giveUp(`exited ${firstStartTries} times (${how})`);
    const delayMs = this.#backoff.nextDelayMs(livedMs);
    this.#options.onUnexpectedExit(this.name, how, delayMs);
    this.#startTimer = setTimeout(() => {
      this.#state = { ...this.#state, restarts: this.#state.restarts + 1 };
      this.#start();
    }, delayMs);
  }

  #giveUp(why: string): void {
    clearTimeout(this.#readyTimer);
    void this.#failFirst(why);
  }

  /** Kills a stuck process, so that it is restarted like after any other exit. */
  #watchLiveness(healthPort: number): void {
    const child = this.#child;
    this.#probe?.abort();
    this.#probe = new AbortController();
    const { signal } = this.#probe;
    const watch = async (): Promise<void> => {
      const reason = await whenStuck(healthPort, signal);
      if (reason === undefined || signal.aborted) return;
      this.#log.write(Buffer.from(`${this.name} killed: liveness probe failed: ${reason}\n`));
      child?.kill("SIGKILL");
    };
    void watch();
  }

  /** Resolves when the output of an ended process has been read; a child of the process may keep the streams open. */
  async #lastOutput(): Promise<void> {
    await Promise.race([this.#outputEnded, delay(lastOutputMs, undefined, { ref: false })]);
  }

  async #failFirst(why: string): Promise<void> {
    await this.#lastOutput();
    const lastLines = this.#log.lastLines().join("\n");
    const message = `${this.name} ${why}.${lastLines === "" ? "" : ` Its last lines:\n${lastLines}`}`;
    this.#first.reject(new LocalError("service_failed", message));
  }

  #follow(stream: NodeJS.ReadableStream | null): void {
    let rest = "";
    stream?.on("data", (chunk: Buffer) => {
      this.#log.write(chunk);
      const { onLine } = this.#options;
      if (onLine === undefined) return;
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) onLine(this.name, line);
    });
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** A run of this length resets the delay. */
const stableRunMs = 10_000;

/** The delay before a restart: none at first, then 100 ms, 200 ms, … 5 s. A long run resets it. */
export class Backoff {
  #shortRuns = 0;

  /** The delay before the next start after a run of `livedMs`, in milliseconds. */
  nextDelayMs(livedMs: number): number {
    if (livedMs >= stableRunMs) this.#shortRuns = 0;
    const delayMs = this.#shortRuns === 0 ? 0 : backoffMs(this.#shortRuns, { firstMs: 100, maxMs: 5_000 });
    this.#shortRuns += 1;
    return delayMs;
  }
}
