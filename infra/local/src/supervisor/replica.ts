// One replica of a service: a process that is started, reports ready over its IPC channel, and is started again when it dies.
//
//   starting ──ready──▶ ready          stop() from anywhere: SIGTERM, and SIGKILL when the drain takes too long ──▶ stopped
//      ▲  │               │
//      │  └─────exit──────┤            The first start is different: a wrong configuration (exit 78) or three deaths in a row
//      └──── waiting ◀────┘            reject `firstReady`, and nothing is tried again.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

import type { ServiceName } from "@parley/contracts";
import { z } from "zod";

import { LocalError } from "../errors.ts";
import type { ReplicaState } from "../home.ts";
import { nameOf } from "../processes.ts";
import { Backoff } from "./backoff.ts";
import { whenStuck } from "./liveness.ts";
import { LogFile } from "./log-file.ts";
import type { WriteTrouble } from "./write-trouble.ts";

/**
 * Node lets the space for young objects grow with the machine's memory, and a start leaves it full: 16 MiB, Node's own limit for
 * years, saves about 70 MiB a service.
 */
const NODE_FLAGS = ["--conditions=@parley/source", "--max-semi-space-size=4"];
/** The chassis ends with this code when the configuration is wrong: trying again would not help. */
const CONFIG_EXIT_CODE = 78;
const FIRST_START_TRIES = 3;
const FIRST_READY_TIMEOUT_MS = 60_000;
const LAST_WORDS_MS = 500;

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
  /** The port people reach it at, or null. */
  readonly httpPort: number | null;
  /** Called with each line it prints. */
  readonly onLine: ((replica: string, line: string) => void) | undefined;
  /** Called whenever `state()` has changed. */
  readonly onChange: () => void;
  /** Called when it died by itself and is about to be started again. */
  readonly onDeath: (replica: string, how: string, delayMs: number) => void;
  /** Called with each new reason for which its start waits. */
  readonly onWaiting: (replica: string, subject: string, reason: string) => void;
  /** Where a log that cannot be written is reported. */
  readonly trouble: WriteTrouble;
}

export class Replica {
  readonly service: ServiceName;
  readonly number: number;
  readonly name: string;
  /** Resolves when it is ready for the first time; rejects with what it said when it cannot be. */
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
    this.#log = new LogFile(options.logPath, { trouble: options.trouble });
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
    this.firstReady.catch(() => {}); // whoever waits for it hears of it
    this.#readyTimer = setTimeout(
      () => this.#giveUp(`was not ready after ${FIRST_READY_TIMEOUT_MS / 1000} s`),
      FIRST_READY_TIMEOUT_MS,
    );
    this.#start();
  }

  state(): ReplicaState {
    return { ...this.#state };
  }

  /** Resolves when it is ready: now, or after its next start. */
  async whenReady(): Promise<void> {
    if (this.#phase === "ready") return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push(resolve);
    await promise;
  }

  /** Sends a signal as it is; after SIGKILL it resolves once the process is gone. False when there is no process. */
  async kill(signal: NodeJS.Signals): Promise<boolean> {
    const child = this.#child;
    if (child === null || hasEnded(child)) return false;
    const gone = once(child, "exit");
    child.kill(signal);
    if (signal === "SIGKILL") await gone;
    return true;
  }

  /** Ends the process in good order and resolves when its successor is ready. */
  async restart(): Promise<void> {
    const successor = Promise.withResolvers<void>();
    this.#child?.once("exit", () => this.#waiters.push(successor.resolve));
    if (!(await this.kill("SIGTERM"))) this.#waiters.push(successor.resolve);
    await successor.promise;
  }

  /** Ends it for good: drained with `drainMs` to do so in, or at once with 0. */
  async stop(drainMs: number): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#startTimer);
    clearTimeout(this.#readyTimer);
    this.#probe?.abort();
    const child = this.#child;
    if (child !== null && !hasEnded(child)) {
      const gone = once(child, "exit");
      child.kill(drainMs === 0 ? "SIGKILL" : "SIGTERM");
      child.kill("SIGCONT"); // a stopped process would never hear it
      const force = setTimeout(() => child.kill("SIGKILL"), drainMs);
      await gone;
      clearTimeout(force);
    }
    this.#phase = "stopped";
    this.#log[Symbol.dispose]();
  }

  #start(): void {
    const { entry, env, cwd, onChange } = this.#options;
    this.#phase = "starting";
    const begun = performance.now();
    // In a session of its own: Ctrl-C in the terminal is for the supervisor, which drains the services in order.
    const child = spawn(process.execPath, [...NODE_FLAGS, entry], {
      cwd,
      env,
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
    // "exit" and not "close": the streams may outlive the process in a child of its own.
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
    if (!this.#everReady && code === CONFIG_EXIT_CODE) return this.#giveUp("has a wrong configuration");
    if (!this.#everReady && this.#state.restarts + 1 >= FIRST_START_TRIES)
      return this.#giveUp(`ended ${FIRST_START_TRIES} times (${how})`);
    const delayMs = this.#backoff.nextDelayMs(livedMs);
    this.#options.onDeath(this.name, how, delayMs);
    this.#startTimer = setTimeout(() => {
      this.#state = { ...this.#state, restarts: this.#state.restarts + 1 };
      this.#start();
    }, delayMs);
  }

  #giveUp(why: string): void {
    clearTimeout(this.#readyTimer);
    void this.#failFirst(why);
  }

  /** Kills a process that can no longer work; it is then started again as after any other death. */
  #watchLiveness(healthPort: number): void {
    const child = this.#child;
    this.#probe?.abort();
    this.#probe = new AbortController();
    const { signal } = this.#probe;
    const watch = async (): Promise<void> => {
      const reason = await whenStuck(healthPort, signal);
      if (reason === undefined || signal.aborted) return;
      this.#log.write(Buffer.from(`${this.name} killed: it cannot work any more: ${reason}\n`));
      child?.kill("SIGKILL");
    };
    void watch();
  }

  async #failFirst(why: string): Promise<void> {
    // What it printed last may still be on its way to us.
    await Promise.race([this.#outputEnded, delay(LAST_WORDS_MS)]);
    const said = this.#log.lastLines().join("\n");
    const message = `${this.name} ${why}.${said === "" ? "" : ` Its last lines:\n${said}`}`;
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
