// One MCP server of this replica, kept alive: started, watched, started again after a pause that grows, left alone for a while when
// it keeps failing. What it has listed stays its list while it is away.
//
//   starting ─→ ready ─→ restarting | broken ─→ starting …
//            └→ restarting | broken
//            └→ consent ─→ starting       (somebody let us in, or a new link is wanted)
//
//   every state ─→ off ─→ starting          (a person switches it off and on)
//   every state but off ─→ starting         (a person wants it started again)
import { setTimeout as delay } from "node:timers/promises";
import {
  UnauthorizedError,
  type Client,
  type Notification,
  type PriorDiscovery,
  type Tool as ServerTool,
} from "@modelcontextprotocol/client";
import type { Logger } from "@parley/chassis";
import type { McpServerStatus } from "@parley/contracts";
import { failure, type ToolContext, type ToolOutput } from "../tool.ts";
import { openConnection, type Connection, type ConnectionDeps } from "./connection.ts";
import { errorText, isClosed, isForgotten, isTimeout } from "./errors.ts";
import type { ConsentProvider } from "./oauth/provider.ts";
import type { McpServerPlan } from "./plan.ts";
import { pauseAfter, type RestartTimes } from "./restart.ts";
import type { Sampling } from "./sampling/sampling.ts";
import { aborted, notReadyText, statusOf, type State } from "./server-state.ts";
import { useFailure } from "./use-failure.ts";
import { Uses } from "./uses.ts";

/** A server that ran so long without a call was well. */
const wellMs = 30_000;

export interface ServerTimes extends RestartTimes {
  /** How long a call waits for a server that is being started. */
  readyMs: number;
  /** How long a server that let a call run into its timeout may take to show that it lives. */
  aliveMs: number;
}

export interface ServerDeps extends Pick<ConnectionDeps, "version"> {
  log: Logger;
  times: ServerTimes;
  auth: ConnectionDeps["auth"];
  /** The one that asks a person for consent; null: nobody is asked. */
  consent: ConsentProvider | null;
  /** Its list or its state is another one. */
  changed: () => void;
  /** What it says by itself; null: it was just reached, and what it said before is lost. */
  notified: (notification: Notification | null) => void;
}

interface Asking {
  /** Whom the server may ask; left out: nobody. */
  person?: ToolContext["person"] | undefined;
  /** How it may ask a model; left out: it may not. */
  sampling?: Sampling | undefined;
  /** What is known of a use that did not end well. */
  soFar?: () => string;
}

/** `notes`: what it is told besides the answer. */
type Act = (client: Client, notes: readonly string[]) => Promise<ToolOutput>;

export class McpServer {
  readonly plan: McpServerPlan;
  readonly #deps: ServerDeps;
  readonly #closing = new AbortController();
  readonly #uses: Uses;
  #state: State = { kind: "starting" };
  #moved = Promise.withResolvers<undefined>();
  #wake = new AbortController();
  #on = true;
  /** Aborted when a person ends the life there is: what follows is no failure. */
  #ended = new AbortController();
  #tools: readonly ServerTool[] = [];
  #prior: PriorDiscovery | undefined;
  #answered = false;
  /** Settles when it is known whether a server that let a call wait in vain still lives. */
  #doubt: Promise<void> = Promise.resolve();
  #life: Promise<void> | undefined;

  constructor(plan: McpServerPlan, deps: ServerDeps) {
    this.plan = plan;
    this.#deps = deps;
    this.#uses = new Uses(plan.name);
  }

  /** How long one that let a call run into its timeout may take to show that it lives. */
  get aliveMs(): number {
    return this.#deps.times.aliveMs;
  }

  /** Those the agent has, as the server listed them last. */
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

  /** Off: nothing of it runs, it has no tools, and whoever uses it is told so. What it works on is broken off. */
  turn(on: boolean): void {
    if (on === this.#on) return;
    this.#on = on;
    if (!on) this.#list([]);
    this.#end("it was switched off", on ? "starting" : "off");
  }

  /** Ends it and starts it again now, also when it is left alone because it kept failing; nothing while it is off. */
  restart(): void {
    if (this.#on) this.#end("it was started again by a person", "starting");
  }

  /** Resolves when the first attempt to start has succeeded or failed. */
  async settled(): Promise<void> {
    while (this.#state.kind === "starting") await this.#moved.promise;
  }

  /** Resolves when it is no longer being started, or cannot be waited for any more. */
  async started(signal: AbortSignal): Promise<void> {
    await this.#until(({ kind }) => kind !== "starting" && kind !== "restarting", signal);
  }

  /** Tries again now, whatever it waits for. */
  retry(): void {
    this.#wake.abort();
  }

  /** The link that a person has to open, made anew where the last one is too old; null: no consent is needed now. */
  async consentLink(signal: AbortSignal): Promise<string | null> {
    if (this.#state.kind === "consent" && this.#deps.consent?.expired === true) {
      this.retry();
      await this.#until(({ kind }) => kind !== "consent", signal);
    }
    await this.#until(({ kind }) => kind !== "starting", signal);
    return this.#state.kind === "consent" ? this.#state.link : null;
  }

  /** Uses the connection once there is one; every failure is an answer. */
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
        if (!again && isForgotten(error)) {
          await this.#drop(connection, "it has forgotten our session");
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
        this.#deps.log.info({ mcp: this.plan.name }, "an MCP server waits for a person's consent");
        this.#become({ kind: "consent", link: outcome.link });
        await aborted(this.#wake.signal);
        continue;
      }
      before = { problem: outcome.problem };
      failures = outcome.well ? 1 : failures + 1;
      const pause = pauseAfter(failures, this.#deps.times);
      this.#deps.log.warn(
        { mcp: this.plan.name, problem: outcome.problem, failures, pauseMs: pause.ms },
        "an MCP server failed",
      );
      this.#become({ kind: pause.broken ? "broken" : "restarting", problem: outcome.problem });
      await delay(pause.ms, undefined, { signal: this.#wake.signal }).catch(() => undefined);
    }
  }

  /** One life of the server, from its start to its end. */
  async #once(): Promise<{ problem: string; well: boolean } | { link: string }> {
    this.#answered = false;
    try {
      const connection = await openConnection(this.plan, {
        ...this.#deps,
        prior: this.plan.era === "auto" ? this.#prior : undefined,
        signal: AbortSignal.any([this.#closing.signal, this.#ended.signal]),
        onTools: (tools) => (this.#on ? this.#list(tools) : undefined),
        onNotification: (notification) => this.#deps.notified(notification),
        onQuestion: (params, signal) => this.#uses.answer(params, signal),
        onSample: (params, signal) => this.#uses.sample(params, signal),
      });
      if (this.#closing.signal.aborted || this.#ended.signal.aborted) {
        const problem = "it is not wanted any more";
        await connection.close(problem);
        return { problem, well: true };
      }
      this.#prior = connection.prior;
      this.#list(connection.tools);
      this.#deps.log.info(
        { mcp: this.plan.name, era: connection.prior.kind, tools: this.#tools.length },
        "an MCP server is ready",
      );
      this.#become({ kind: "ready", connection });
      this.#deps.notified(null);
      const readyAt = performance.now();
      const problem = await connection.closed;
      return { problem, well: this.#answered || performance.now() - readyAt >= wellMs };
    } catch (error) {
      // What was believed of its era may be what is wrong.
      this.#prior = undefined;
      const link = this.#deps.consent?.link;
      if (error instanceof UnauthorizedError && link !== undefined) return { link };
      return { problem: errorText(error), well: false };
    }
  }

  /** The connection, or why there is none. */
  async #ready(signal: AbortSignal): Promise<Connection | string> {
    const { name } = this.plan;
    await this.#doubt;
    await this.started(signal);
    const state = this.#state;
    if (state.kind === "ready") return state.connection;
    if (state.kind === "consent") {
      const link = (await this.consentLink(signal)) ?? state.link;
      return `The MCP server ${name} needs a person's consent first. Ask the user to open this link, then try again: ${link}`;
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

  /** A server that answers nothing at all any more is ended, and started again. */
  async #checkAlive(connection: Connection): Promise<void> {
    const { aliveMs: timeout } = this.#deps.times;
    const modern = connection.client.getProtocolEra() === "modern";
    try {
      await (modern ? connection.client.discover({ timeout }) : connection.client.ping({ timeout }));
    } catch (error) {
      if (isTimeout(error)) await this.#drop(connection, "it has stopped answering");
    }
  }

  /** Ends the connection; the supervision goes on from there. Resolves when it is the former one. */
  async #drop(connection: Connection, reason: string): Promise<void> {
    await connection.close(reason);
    await this.#until((state) => state.kind !== "ready" || state.connection !== connection, this.#closing.signal);
  }

  /** A person ends what there is; the supervision goes on from `kind`, without a pause. */
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
