// What belongs to the program that drives a run: its hooks, tools, sub-agents and decisions, and the stream that it reads.

import { errorMessage, type SessionEvent } from "@parley/contracts";
import type { SdkMessage } from "@parley/projections";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import { type Io, note, print } from "../io/io.ts";
import { workspaceFolder } from "./agent-info.ts";
import { ExternalServers, readExternalServer } from "./external-servers.ts";
import { type HookReport, ProgramHooks } from "./hooks.ts";
import type { RunOptions } from "./options.ts";
import type { RunSession } from "./place.ts";
import { ProgramApprovals } from "./program-approval.ts";
import { ProgramObserver } from "./program-observer.ts";
import { ProgramRequests } from "./program-requests.ts";
import { ProgramServers } from "./program-servers.ts";
import { ProgramSession } from "./program-session.ts";
import { ProgramStream } from "./program-stream.ts";
import type { RunListener, RunResult } from "./stream.ts";
import type { Subagent } from "./subagents.ts";

export interface ProgramDeps {
  readonly gateway: Gateway;
  readonly target: Target;
  readonly io: Io;
  readonly options: RunOptions;
  /** Opens the session of the run, if there is none yet. */
  readonly openSession: () => Promise<RunSession>;
  readonly sessionId: () => string | null;
  /** The run waits for this work before it ends. */
  readonly start: (work: Promise<void>) => void;
  /** Ends the running turn. */
  readonly stop: () => void;
  /** Continues the run with another message. */
  readonly again: (text: string) => void;
  /** The run has failed, although its last turn has not. */
  readonly fail: () => void;
  /** Reports a call of a hook in the stream. */
  readonly report: (body: HookReport) => void;
}

export class Program implements RunListener {
  readonly requests: ProgramRequests;
  readonly hooks: ProgramHooks;
  readonly servers: ProgramServers;
  readonly session: ProgramSession;
  readonly approvals: ProgramApprovals;
  readonly observer: ProgramObserver;
  readonly stream: ProgramStream;
  readonly #deps: Pick<ProgramDeps, "gateway" | "io">;
  readonly #options: RunOptions;
  readonly #external: ExternalServers;
  readonly #hookContext: () => Readonly<Record<string, unknown>>;

  constructor({ gateway, target, io, options, openSession, sessionId, start, stop, again, fail, report }: ProgramDeps) {
    this.#deps = { gateway, io };
    this.#options = options;
    const send = (request: object): void => print(io, JSON.stringify(request));
    const common = { gateway, note: (text: string) => note(io, text), start };
    const cwd = workspaceFolder(target) ?? "";
    const hookContext = () => ({ session_id: sessionId() ?? "", transcript_path: "", cwd });
    this.#hookContext = hookContext;
    this.requests = new ProgramRequests(send);
    const reports = options.hookEvents ? report : undefined;
    this.hooks = new ProgramHooks({ requests: this.requests, note: common.note, report: reports });
    const { requests, hooks } = this;
    this.#external = new ExternalServers(io.env);
    this.#external.add(options.externalServers);
    this.servers = new ProgramServers({ ...common, requests, external: this.#external });
    this.session = new ProgramSession({ ...common, servers: this.servers, open: openSession });
    this.observer = new ProgramObserver({ ...common, hooks, hookContext, stop });
    const asked = (tool: string) =>
      this.observer.notification("permission_prompt", `Permission is needed for ${tool}.`);
    const { programApproves } = options;
    this.approvals = new ProgramApprovals({ ...common, hooks, programApproves, hookContext, send, asked });
    const source = sourceOf(options);
    this.stream = new ProgramStream({ hooks, hookContext, print: send, note: common.note, again, fail, source });
  }

  /** Handles a message of the run's stream. `subagent`: the sub-agent that it is of; omitted: the run itself. */
  message(message: SdkMessage, subagent?: Pick<Subagent, "sessionId" | "profile">): void {
    if (!this.#printsStream) return;
    this.stream.message(message);
    this.observer.message(message, subagent);
    if (this.#options.streamInput) this.approvals.message(message);
  }

  resultWithoutTurn(result: RunResult): void {
    if (this.#printsStream) this.stream.resultWithoutTurn(result);
  }

  get #printsStream(): boolean {
    return this.#options.output === "stream-json";
  }

  /** Handles an event of the run. */
  event(event: SessionEvent): void {
    this.servers.event(event);
    this.observer.event(event);
  }

  /** Handles an event of a sub-agent of the run. */
  subagentEvent(event: SessionEvent, subagent: Subagent): void {
    this.servers.event(event);
    if (event.type === "subagent.started") this.observer.event(event);
    if (this.#options.streamInput) this.approvals.subagentEvent(event, subagent);
  }

  /** Adds MCP servers that this process reaches; returns their names. Throws Error for one that cannot be used. */
  addServers(servers: unknown): string[] {
    const entries = Object.entries(typeof servers === "object" && servers !== null ? servers : {});
    this.#external.add(Object.fromEntries(entries.map(([name, config]) => [name, readExternalServer(name, config)])));
    return entries.map(([name]) => name);
  }

  /** What the program's hooks and tools add to a message. */
  extras() {
    return {
      ...(this.hooks.has("PreToolUse") ? { review: true } : {}),
      ...(this.hooks.has("PermissionRequest") ? { interactive: true } : {}),
      ...this.session.extras,
    };
  }

  /** The program can no longer answer anything. */
  inputEnded(): void {
    this.requests.close();
    this.approvals.close();
  }

  /** The program has sent its last message, and every result is printed. Hooks on the end can no longer answer. */
  ended(): void {
    this.hooks.announce("SessionEnd", { ...this.#hookContext(), reason: "other" }, "other");
  }

  /** Stops sub-agents that outlive the run if the program reviews their calls: each call would wait for somebody else. Never rejects. */
  async stopUnreviewed(sessionIds: readonly string[]): Promise<void> {
    if (!this.hooks.has("PreToolUse")) return;
    const { gateway, io } = this.#deps;
    const stop = async (id: string): Promise<void> => {
      try {
        await gateway.run(api.cancel, { id });
        note(io, `the sub-agent ${id} was stopped: its calls cannot be reviewed after the end of the run`);
      } catch (error) {
        note(io, `the sub-agent ${id} was not stopped: ${errorMessage(error)}`);
      }
    };
    await Promise.all(sessionIds.map(stop));
  }

  async close(): Promise<void> {
    this.servers.close();
    await Promise.all([this.#external.close(), this.session.release()]);
  }
}

/** How the session of a run begins. */
function sourceOf({ session, fork }: RunOptions): "startup" | "resume" | "fork" {
  if (session === null || session === "new") return "startup";
  return fork ? "fork" : "resume";
}
