// Runs an MCP server as a program that exchanges messages on standard input and output, one per line. It has its own process group
// and a clean environment; all its processes end with it and with this service. It does not depend on the content of messages.
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ReadBuffer, serializeMessage, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { abortable } from "@parley/kit";
import { killMarked, signalGroup } from "../workspace/process-tree.ts";
import { parentDeathScript } from "../sandbox/run-command.ts";
import type { StdioPlan } from "./server-config.ts";

/** Maximum size of one message of a server, in bytes. */
const maxMessageBytes = 10 * 1024 * 1024;
/** Characters kept from the end of standard error, which usually contains the reason of a failure. */
const keptErrorCharacters = 4_000;
/** How long a server may take to end after its input was closed, and again after SIGTERM. */
const politeMs = 1_000;
/** Exit code of a shell that did not find its command. */
const notFoundCode = 127;
/** How long to read output after the exit. */
const lastOutputMs = 1_000;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** With `pid`: lets the library treat silence as a legacy server, not an outage. */
  readonly stderr = null;
  readonly #plan: StdioPlan;
  readonly #mark = randomUUID();
  readonly #buffer = new ReadBuffer({ maxBufferSize: maxMessageBytes });
  readonly #exited = Promise.withResolvers<undefined>();
  #child: ChildProcess | undefined;
  #errors = "";
  #problem: string | undefined;
  #exitCode: number | null = null;

  constructor(plan: StdioPlan) {
    this.#plan = plan;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Why the program ended, or its last lines on standard error; undefined if nothing is known. */
  get problem(): string | undefined {
    if (this.#commandNotFound()) return `program "${this.#plan.command}" not found; install it or configure its path`;
    const last = this.#errors.trim().split("\n").slice(-3).join(" ").slice(-500);
    if (this.#problem === undefined) return last === "" ? undefined : last;
    return last === "" ? this.#problem : `${this.#problem}: ${last}`;
  }

  /** Rejects when the program cannot be started. */
  async start(): Promise<void> {
    const { command, args, cwd, variables } = this.#plan;
    const child = spawn("/bin/sh", ["-c", parentDeathScript, `PARLEY_MCP_SERVER=${this.#mark}`, command, ...args], {
      cwd,
      env: { ...variables, PARLEY_MCP_SERVER: this.#mark },
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe"],
    });
    this.#child = child;
    const started = new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", reject);
    });
    child.once("exit", (code, signal) => void this.#ended(code, signal));
    child.stdin?.on("error", (error) => this.onerror?.(error));
    child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString("utf8")).slice(-keptErrorCharacters);
    });
    for (const stream of [child.stdout, child.stderr, child.stdio[3]]) stream?.on("error", () => undefined);
    try {
      await started;
    } catch (error) {
      this.#exited.resolve(undefined);
      throw error;
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { stdin } = this.#child ?? {};
    if (stdin === undefined || stdin === null || !stdin.writable)
      throw new Error(this.problem ?? "the server has ended");
    await new Promise<void>((resolve, reject) => {
      stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Closes standard input, then sends SIGTERM, then SIGKILL. Resolves when no process of the program runs. */
  async close(): Promise<void> {
    const { pid, stdin } = this.#child ?? {};
    if (pid === undefined) return;
    stdin?.end();
    if (await this.#endsWithin(politeMs)) return;
    signalGroup(pid, "SIGTERM");
    if (await this.#endsWithin(politeMs)) return;
    this.kill();
    await this.#exited.promise;
  }

  /** Kills the program immediately. */
  kill(): void {
    const { pid } = this.#child ?? {};
    if (pid !== undefined) signalGroup(pid, "SIGKILL");
    killMarked(`PARLEY_MCP_SERVER=${this.#mark}`);
  }

  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk);
    } catch {
      this.#problem = `it wrote a message of more than ${maxMessageBytes} bytes`;
      this.kill();
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // The line is JSON but not a message; the buffer silently skips lines that are not JSON.
        this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  async #ended(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    const child = this.#child;
    this.#exitCode = code;
    this.#problem ??= signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
    // Ends its background processes as well.
    this.kill();
    const closed = new Promise((resolve) => child?.once("close", resolve));
    child?.stdio[3]?.destroy();
    await Promise.race([closed, delay(lastOutputMs, undefined, { ref: false })]);
    for (const stream of child?.stdio ?? []) stream?.destroy();
    this.#exited.resolve(undefined);
    this.onclose?.();
  }

  /**
   * Whether the shell did not find the command. Read from the shell's message because a program may exit with 127 too; evaluated when
   * it is needed because standard error can arrive after the exit.
   */
  #commandNotFound(): boolean {
    return this.#exitCode === notFoundCode && this.#errors.trimEnd().endsWith(`exec: ${this.#plan.command}: not found`);
  }

  async #endsWithin(ms: number): Promise<boolean> {
    const ended = this.#exited.promise.then(() => true);
    return abortable(ended, AbortSignal.timeout(ms)).catch(() => false);
  }
}
