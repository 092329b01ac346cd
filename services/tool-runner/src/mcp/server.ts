// Supervises one MCP server of this replica: starts it, restarts it with exponential backoff, and pauses when it keeps failing.
// Its last list of tools remains valid while it is down.
//
//   starting ─→ ready ─→ restarting | broken ─→ starting …
//            └→ restarting | broken
//            └→ consent ─→ starting       (a person consented, or a new link is needed)
//
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
import { failure, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { openConnection, type Connection, type ConnectionDeps } from "./connection.ts";
import { errorText, isClosed, isSessionExpired, isTimeout } from "./errors.ts";
import type { ConsentProvider } from "./oauth/provider.ts";
import type { McpServerConfig } from "./server-config.ts";
import { restartDelay, type RestartTimes } from "./restart.ts";
import type { Sampling } from "./sampling.ts";
import { aborted, notReadyText, statusOf, type State } from "./server-state.ts";
import { useFailure } from "./call-failure.ts";
import { InFlightCalls } from "./in-flight-calls.ts";

/** A server that ran for this long without a call counts as working. */
const wellMs = 30_000;

export interface ServerTimes extends RestartTimes {
  /** How long a call waits for a server that is starting. */
  readyMs: number;
  /** Timeout of the liveness check after a call timed out. */
  aliveMs: number;
}

export interface ServerDeps extends Pick<ConnectionDeps, "version"> {
  log: Logger;
  times: ServerTimes;
  auth: ConnectionDeps["auth"];
  /** The provider that uses a person's consent; null: none. */
  consent: ConsentProvider | null;
  /** Called when the server's tools or state have changed. */
  changed: () => void;
}

interface Asking {
  /** The person for elicitation; undefined: not allowed. */
  person?: ToolContext["person"] | undefined;
  /** Handles sampling; undefined: not allowed. */
  sampling?: Sampling | undefined;
  /** Text about the progress of a call that failed. */
  soFar?: () => string;
}

/** `notes`: remarks to add to the result. */
type Act = (client: Client, notes: readonly string[]) => Promise<ToolOutput>;

export class McpServer {
  readonly plan: McpServerConfig;
  readonly #deps: ServerDeps;
  readonly #closing = new AbortController();
  readonly #uses: InFlightCalls;
  #state: State = { kind: "starting" };
  #moved = Promise.withResolvers<undefined>();
  #wake = new AbortController();
  #on = true;
  /** Aborted when a person ends the current run: its end is then not a failure. */
  #ended = new AbortController();
  #tools: readonly ServerTool[] = [];
  #prior: PriorDiscovery | undefined;
  #answered = false;
  /** Settles when the liveness check after a timed out call has finished. */
  #doubt: Promise<void> = Promise.resolve();
  #life: Promise<void> | undefined;

  constructor(plan: McpServerConfig, deps: ServerDeps) {
    this.plan = plan;
    this.#deps = deps;
    this.#uses = new InFlightCalls(plan.name);
  }

  /** Timeout of the liveness check after a call timed out. */
  get aliveMs(): number {
    return this.#deps.times.aliveMs;
  }

  /** The allowed tools, as last listed by the server. */
  get tools(): readonly ServerTool[] {
    return this.#tools;
  }

  get status(): McpServerStatus {
    return statusOf(this.plan.name, this.#state, this.#tools.length);
  }

  start(): void {
    this.#life = this.#live();
  }

  get on(): boolean {
    return this.#on;
  }

  /** Switching off ends the server and its running calls, removes its tools, and fails further calls. */
  turn(on: boolean): void {
    if (on === this.#on) return;
    this.#on = on;
    if (!on) this.#list([]);
    this.#end("it was switched off", on ? "starting" : "off");
  }

  /** Restarts the server now, even during a pause after failures; does nothing while it is off. */
  restart(): void {
    if (this.#on) this.#end("it was restarted by a person", "starting");
  }

  /** Resolves when the first attempt to start has succeeded or failed. */
  async settled(): Promise<void> {
    while (this.#state.kind === "starting") await this.#moved.promise;
  }

  /** Resolves when the server is no longer starting, after `readyMs`, or when the signal is aborted. */
  async started(signal: AbortSignal): Promise<void> {
    await this.#until(({ kind }) => kind !== "starting" && kind !== "restarting", signal);
  }

  /** Starts the server now instead of waiting for a pause or for consent. */
  retry(): void {
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
  async use(act: Act, signal: AbortSignal, { person, sampling, soFar = () => "" }: Asking = {}): Promise<ToolOutput> {
    for (let again = false; ; again = true) {
      const connection = await this.#ready(signal);
      if (typeof connection === "string") return failure(connection);
      const use = { notes: [], person, sampling, signal };
      try {
        const output = await this.#uses.during(use, () => act(connection.client, use.notes));
        this.#answered = true;
        return output;
      } catch (error) {
        if (!again && isSessionExpired(error)) {
          await this.#drop(connection, "our session has expired");
          continue;
        }
        return this.#failed(
          connection,
          error,
          signal,
          [soFar(), ...use.notes].filter((each) => each !== "").join("\n"),
        );
      }
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
    let failures = 0;
    let before: { problem?: string } = {};
    while (!this.#closing.signal.aborted) {
      this.#wake = new AbortController();
      if (this.#ended.signal.aborted) {
        this.#ended = new AbortController();
        failures = 0;
        before = {};
      }
      if (!this.#on) {
        this.#become({ kind: "off" });
        await aborted(this.#wake.signal);
        continue;
      }
      this.#become({ kind: "starting", ...before });
      const outcome = await this.#once();
      if (this.#closing.signal.aborted) return;
      if (this.#ended.signal.aborted) continue;
      if ("link" in outcome) {
        this.#deps.log.info({ mcp: this.plan.name }, "MCP server start paused: a person's consent is required");
        this.#become({ kind: "consent", link: outcome.link });
        await aborted(this.#wake.signal);
        continue;
      }
      before = { problem: outcome.problem };
      failures = outcome.well ? 1 : failures + 1;
      const pause = restartDelay(failures, this.#deps.times);
      this.#deps.log.warn(
        { mcp: this.plan.name, problem: outcome.problem, failures, pauseMs: pause.ms },
        "MCP server failed",
      );
      this.#become({ kind: pause.broken ? "broken" : "restarting", problem: outcome.problem });
      await delay(pause.ms, undefined, { signal: this.#wake.signal }).catch(() => undefined);
    }
  }

  /** One run of the server, from its start to its end. */
  async #once(): Promise<{ problem: string; well: boolean } | { link: string }> {
    this.#answered = false;
    try {
      const connection = await openConnection(this.plan, {
        ...this.#deps,
        prior: this.plan.era === "auto" ? this.#prior : undefined,
        signal: AbortSignal.any([this.#closing.signal, this.#ended.signal]),
        onTools: (tools) => (this.#on ? this.#list(tools) : undefined),
        onQuestion: (params, signal) => this.#uses.answer(params, signal),
        onSample: (params, signal) => this.#uses.sample(params, signal),
      });
      if (this.#closing.signal.aborted || this.#ended.signal.aborted) {
        const problem = "it is no longer needed";
        await connection.close(problem);
        return { problem, well: true };
      }
      this.#prior = connection.prior;
      this.#list(connection.tools);
      this.#deps.log.info(
        { mcp: this.plan.name, era: connection.prior.kind, tools: this.#tools.length },
        "MCP server ready",
      );
      this.#become({ kind: "ready", connection });
      const readyAt = performance.now();
      const problem = await connection.closed;
      return { problem, well: this.#answered || performance.now() - readyAt >= wellMs };
    } catch (error) {
      // The remembered era may be the cause of the failure.
      this.#prior = undefined;
      const link = this.#deps.consent?.link;
      if (error instanceof UnauthorizedError && link !== undefined) return { link };
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
    return notReadyText(name, state);
  }

  async #failed(connection: Connection, error: unknown, signal: AbortSignal, soFar: string): Promise<ToolOutput> {
    const { aborted: isOver } = signal;
    const closed = !isOver && isClosed(error) ? await connection.closed : undefined;
    const failed = useFailure({
      server: this.plan.name,
      error,
      aborted: isOver,
      soFar,
      closed,
      consentLink: this.#deps.consent?.link,
      restarts: this.#on,
    });
    if (failed.server === "lives") this.#answered ||= failed.well;
    else if (failed.server === "doubtful") this.#doubt = this.#checkAlive(connection);
    else await this.#drop(connection, failed.reason);
    return failure(failed.text);
  }

  /** Restarts a server that does not respond to a ping either. */
  async #checkAlive(connection: Connection): Promise<void> {
    const { aliveMs: timeout } = this.#deps.times;
    const modern = connection.client.getProtocolEra() === "modern";
    try {
      await (modern ? connection.client.discover({ timeout }) : connection.client.ping({ timeout }));
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
    this.#tools = tools.filter((tool) => this.plan.allows(tool.name));
    this.#deps.changed();
  }

  #become(state: State): void {
    this.#state = state;
    this.#moved.resolve(undefined);
    this.#moved = Promise.withResolvers();
    this.#deps.changed();
  }

  async #until(wanted: (state: State) => boolean, signal: AbortSignal): Promise<void> {
    const over = AbortSignal.any([signal, AbortSignal.timeout(this.#deps.times.readyMs)]);
    const stopped = aborted(over);
    while (!wanted(this.#state) && !over.aborted) await Promise.race([this.#moved.promise, stopped]);
  }
}
