// Supervises one MCP server of this replica: starts it, restarts it with exponential backoff, and pauses when it keeps failing.
// Its last list of tools remains valid while it is down.
//   starting ─→ ready ─→ restarting | broken ─→ starting …
//            └→ restarting | broken
//            └→ consent ─→ starting       (a person consented, or a new link is needed)
//   every state ─→ off ─→ starting          (a person switches it off and on)
//   every state but off ─→ starting         (a person restarts it)
import { setTimeout as delay } from "node:timers/promises";
import {
  UnauthorizedError,
  type Client,
  type PriorDiscovery,
  type Tool as ServerTool,
} from "@modelcontextprotocol/client";
import type { Logger } from "@parley/chassis";
import type { McpServerStatus } from "@parley/contracts";
import { abortable } from "@parley/kit";
import { failure, type ToolOutput } from "../tool/tool.ts";
import { openConnection, type Connection, type ConnectionDeps } from "./connection.ts";
import { callFailure, errorText, isClosed, isSessionExpired, isTimeout, notReadyText } from "./failures.ts";
import { InFlightCalls, type InFlightCall } from "./in-flight-calls.ts";
import type { ConsentProvider } from "./oauth/provider.ts";
import { restartDelay, type McpServerConfig, type ServerTimes } from "./server-config.ts";

/** A server that ran for this long without a call counts as working. */
const wellMs = 30_000;

export interface ServerDeps extends Pick<ConnectionDeps, "version" | "auth"> {
  log: Logger;
  times: ServerTimes;
  /** The provider that uses a person's consent; null: none. */
  consent: ConsentProvider | null;
  /** Called when the server's tools or state have changed. */
  changed: () => void;
}

/** `problem`: why the previous run ended, or what the start waits for. */
type State = { problem?: string } & (
  | { kind: "ready"; connection: Connection }
  | { kind: "consent"; link: string }
  | { kind: "starting" | "restarting" | "broken" | "off" | "closed" }
);

/** `notes`: remarks to add to the result. */
type Act = (client: Client, notes: readonly string[]) => Promise<ToolOutput>;

export class McpServer {
  readonly plan: McpServerConfig;
  /** False: switched off by a person. */
  on = true;
  /** The allowed tools, as last listed by the server. */
  tools: readonly ServerTool[] = [];
  /** Timeout of the liveness check after a call timed out. */
  readonly aliveMs: number;
  readonly #deps: ServerDeps;
  readonly #closing = new AbortController();
  readonly #calls: InFlightCalls;
  #state: State = { kind: "starting" };
  #moved = Promise.withResolvers<undefined>();
  /** Aborted to end a pause. */
  #wake = new AbortController();
  /** Aborted when a person ends the current run: its end is then not a failure. */
  #ended = new AbortController();
  #prior: PriorDiscovery | undefined;
  #answered = false;
  /** Settles when the liveness check after a timed out call has finished. */
  #doubt: Promise<void> = Promise.resolve();
  #life: Promise<void> | undefined;

  constructor(plan: McpServerConfig, deps: ServerDeps) {
    this.plan = plan;
    this.#deps = deps;
    this.aliveMs = deps.times.aliveMs;
    this.#calls = new InFlightCalls(plan.name);
  }

  get status(): McpServerStatus {
    const { kind, problem = null } = this.#state;
    return { server: this.plan.name, state: kind === "closed" ? "off" : kind, tools: this.tools.length, problem };
  }

  start(): void {
    this.#life = this.#live();
  }

  /** Switching off ends the server and its running calls, removes its tools, and fails further calls. */
  turn(on: boolean): void {
    if (on === this.on) return;
    this.on = on;
    if (!on) this.#list([]);
    this.#end("it was switched off", on ? "starting" : "off");
  }

  /** Restarts the server now, even during a pause after failures; does nothing while it is off. */
  restart(): void {
    if (this.on) this.#end("it was restarted by a person", "starting");
  }

  /** Resolves when the first attempt to start has succeeded or failed. */
  async settled(): Promise<void> {
    while (this.#state.kind === "starting") await this.#moved.promise;
  }

  /** Resolves when the server is no longer starting, after the time limit of its start, or when the signal is aborted. */
  async started(signal: AbortSignal): Promise<void> {
    await this.#until(({ kind }) => kind !== "starting" && kind !== "restarting", signal);
  }

  /** Starts the server now instead of waiting for a pause or for consent. */
  retry(): void {
    if (this.#state.kind === "consent") this.#become({ kind: "starting" });
    this.#wake.abort();
  }

  /** The link that a person must open, renewed if it is about to expire; null: no consent is required now. */
  async consentLink(signal: AbortSignal): Promise<string | null> {
    if (this.#state.kind === "consent" && this.#deps.consent?.expired === true) {
      this.retry();
      await this.#until(({ kind }) => kind !== "consent", signal);
    }
    await this.#until(({ kind }) => kind !== "starting", signal);
    return this.#state.kind === "consent" ? this.#state.link : null;
  }

  /** Runs `act` on the connection as soon as there is one; returns every failure as a result. */
  async use(act: Act, signal: AbortSignal, asking: Omit<InFlightCall, "notes" | "signal"> = {}): Promise<ToolOutput> {
    for (let again = false; ; again = true) {
      const connection = await this.#ready(signal);
      if (typeof connection === "string") return failure(connection);
      const call: InFlightCall = { ...asking, notes: [], signal };
      try {
        const output = await this.#calls.during(call, () => act(connection.client, call.notes));
        this.#answered = true;
        return output;
      } catch (error) {
        if (again || !isSessionExpired(error)) return this.#failed(connection, error, call);
      }
      await this.#drop(connection, "our session has expired");
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake.abort();
    const state = this.#state;
    this.#become({ kind: "closed" });
    if (state.kind === "ready") await state.connection.close("this tool-runner is stopping");
    await this.#life;
  }

  async #live(): Promise<void> {
    const { log, times } = this.#deps;
    const { name: mcp } = this.plan;
    let failures = 0;
    let before: { problem?: string } = {};
    while (!this.#closing.signal.aborted) {
      this.#wake = new AbortController();
      if (this.#ended.signal.aborted) {
        this.#ended = new AbortController();
        failures = 0;
        before = {};
      }
      if (!this.on) {
        this.#become({ kind: "off" });
        await this.#pause();
        continue;
      }
      this.#become({ kind: "starting", ...before });
      const end = await this.#run();
      if (this.#closing.signal.aborted || this.#ended.signal.aborted) continue;
      if ("link" in end) {
        log.info({ mcp }, "MCP server start paused: a person's consent is required");
        this.#become({ kind: "consent", link: end.link, problem: "waiting for a person's consent" });
        await this.#pause();
        continue;
      }
      const { problem } = end;
      before = { problem };
      failures = end.well ? 1 : failures + 1;
      const pause = restartDelay(failures, times);
      log.warn({ mcp, reason: problem, failures, waitMs: pause.ms }, "MCP server failed");
      this.#become({ kind: pause.broken ? "broken" : "restarting", problem });
      await this.#pause(pause.ms);
    }
  }

  /** Ends when the server is woken, at the latest after `ms`, by default the maximum of a timer. */
  async #pause(ms = 2 ** 31 - 1): Promise<void> {
    await delay(ms, undefined, { signal: this.#wake.signal }).catch(() => undefined);
  }

  /** One run of the server, from its start to its end. `well`: it worked. */
  async #run(): Promise<{ problem: string; well: boolean } | { link: string }> {
    const { log, version, auth, consent } = this.#deps;
    const stop = AbortSignal.any([this.#closing.signal, this.#ended.signal]);
    this.#answered = false;
    try {
      const connection = await openConnection(this.plan, {
        version,
        auth,
        prior: this.plan.era === "auto" ? this.#prior : undefined,
        signal: stop,
        onTools: (tools) => (this.on ? this.#list(tools) : undefined),
        onQuestion: (params, signal) => this.#calls.answer(params, signal),
        onSample: (params, signal) => this.#calls.sample(params, signal),
      });
      if (stop.aborted) {
        await connection.close("it is no longer needed");
        return { problem: "it is no longer needed", well: true };
      }
      this.#prior = connection.prior;
      this.#list(connection.tools);
      log.info({ mcp: this.plan.name, era: connection.prior.kind, tools: this.tools.length }, "MCP server ready");
      this.#become({ kind: "ready", connection });
      const readyAt = performance.now();
      const problem = await connection.closed;
      return { problem, well: this.#answered || performance.now() - readyAt >= wellMs };
    } catch (error) {
      // The remembered era may be the cause of the failure.
      this.#prior = undefined;
      if (error instanceof UnauthorizedError && consent?.link !== undefined) return { link: consent.link };
      return { problem: errorText(error), well: false };
    }
  }

  /** The connection, or a message why there is none. */
  async #ready(signal: AbortSignal): Promise<Connection | string> {
    const { name } = this.plan;
    await this.#doubt;
    await this.started(signal);
    const state = this.#state;
    if (state.kind === "ready") return state.connection;
    if (state.kind === "consent") {
      const link = (await this.consentLink(signal)) ?? state.link;
      return `The MCP server ${name} requires a person's consent. Ask the user to open this link, then try again: ${link}`;
    }
    return notReadyText(this.status);
  }

  async #failed(connection: Connection, error: unknown, call: InFlightCall): Promise<ToolOutput> {
    const { aborted } = call.signal;
    const failed = callFailure({
      server: this.plan.name,
      error,
      aborted,
      soFar: [call.soFar?.() ?? "", ...call.notes].filter((each) => each !== "").join("\n"),
      closed: !aborted && isClosed(error) ? await connection.closed : undefined,
      consentLink: this.#deps.consent?.link,
      restarts: this.on,
    });
    if (failed.server === "lives") this.#answered ||= failed.well;
    else if (failed.server === "doubtful") this.#doubt = this.#checkAlive(connection);
    else await this.#drop(connection, failed.reason);
    return failure(failed.text);
  }

  /** Restarts a server that does not respond to a ping either. */
  async #checkAlive(connection: Connection): Promise<void> {
    const { client } = connection;
    const options = { timeout: this.aliveMs };
    try {
      await (client.getProtocolEra() === "modern" ? client.discover(options) : client.ping(options));
    } catch (error) {
      if (isTimeout(error)) await this.#drop(connection, "it stopped responding");
    }
  }

  /** Ends the connection; supervision then continues. Resolves when the connection is no longer the current one. */
  async #drop(connection: Connection, reason: string): Promise<void> {
    await connection.close(reason);
    await this.#until((state) => state.kind !== "ready" || state.connection !== connection, this.#closing.signal);
  }

  /** Ends the current run for a person; supervision continues from `kind` without a pause. */
  #end(reason: string, kind: "starting" | "off"): void {
    const state = this.#state;
    this.#ended.abort();
    if (state.kind === "closed") return;
    this.#become({ kind });
    if (state.kind === "ready") void state.connection.close(reason);
    this.#wake.abort();
  }

  #list(tools: readonly ServerTool[]): void {
    this.tools = tools.filter((tool) => this.plan.allows(tool.name));
    this.#deps.changed();
  }

  #become(state: State): void {
    this.#state = state;
    this.#moved.resolve(undefined);
    this.#moved = Promise.withResolvers();
    this.#deps.changed();
  }

  async #until(wanted: (state: State) => boolean, signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([signal, AbortSignal.timeout(this.plan.startTimeoutMs)]);
    while (!wanted(this.#state) && !over.aborted) await abortable(this.#moved.promise, over).catch(() => undefined);
  }
}
