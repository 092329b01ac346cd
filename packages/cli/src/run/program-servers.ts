// MCP servers of the program, in its process or reached by this one: their tools belong to the session of the run, and a call of one is passed on to the program. The
// store lets one process take a call, so a call that was started is never started again.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

import { errorMessage, type ProgramTool, type SessionEvent } from "@parley/contracts";
import { omitUndefined, parseJsonObject } from "@parley/kit";
import type { SdkInit } from "@parley/projections";
import { z } from "zod";

import { api } from "../cluster/api.ts";
import { type Gateway, RequestRejectedError } from "../cluster/gateway.ts";
import { firstIssue } from "../io/io.ts";
import type { ExternalServers } from "./external-servers.ts";
import { resultText } from "./program-results.ts";
import type { ProgramRequests } from "./program-requests.ts";

export interface ProgramServersDeps {
  readonly gateway: Pick<Gateway, "run">;
  readonly requests: ProgramRequests;
  /** Servers that this process reaches itself. */
  readonly external: ExternalServers;
  readonly note: (text: string) => void;
  /** The run ends after this work. */
  readonly start: (work: Promise<void>) => void;
}

/** How long a taken call is held without being renewed. */
const holdMs = 20_000;
const renewMs = 5_000;
/** The event of a started call can be lost; then it is noticed after this time. */
const pollMs = 2_000;
const protocolVersion = "2025-06-18";
const clientInfo = { name: "parley", version: "1" };

const Tool = z.looseObject({
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  inputSchema: z.record(z.string(), z.unknown()).optional(),
  annotations: z
    .looseObject({
      readOnlyHint: z.boolean().optional(),
      destructiveHint: z.boolean().optional(),
      openWorldHint: z.boolean().optional(),
    })
    .nullish(),
});
const ToolList = z.looseObject({ tools: z.array(Tool) });
const Manifests = z.record(z.string(), z.looseObject({ toolsListResult: ToolList.nullish() }));
const Answer = z.looseObject({
  mcp_response: z.looseObject({
    result: z.unknown().optional(),
    error: z.looseObject({ message: z.string() }).optional(),
  }),
});

interface Route {
  readonly server: string;
  readonly tool: string;
}

interface Call extends Route {
  readonly turnId: string;
  readonly callId: string;
  readonly over: AbortController;
  /** Resolves when the call may have been offered. */
  changed: PromiseWithResolvers<void>;
}

export class ProgramServers {
  readonly #deps: ProgramServersDeps;
  /** Of this process, as the holder of calls. */
  readonly #id = randomUUID();
  readonly #routes = new Map<string, Route>();
  /** The servers, by name, with the start of their protocol. */
  readonly #servers = new Map<string, Promise<unknown> | null>();
  readonly #calls = new Map<string, Call>();
  #messages = 0;
  /** Why calls could not be taken, as last reported; null: they can. */
  #problem: string | null = null;

  constructor(deps: ProgramServersDeps) {
    this.#deps = deps;
  }

  get names(): readonly string[] {
    return [...this.#servers.keys()];
  }

  /** The agent's data with the servers and their tools. */
  added(info: SdkInit): SdkInit {
    const servers = this.names.map((name) => ({ name, status: "connected" }));
    return {
      ...info,
      tools: [...new Set([...info.tools, ...this.#routes.keys()])],
      mcpServers: [...info.mcpServers, ...servers],
    };
  }

  /**
   * The tools of the servers with these names. `manifests`: their lists of tools, where the program sent them. Throws Error for names that
   * a tool cannot have.
   */
  async define(servers: readonly string[], manifests: unknown): Promise<ProgramTool[]> {
    const known = Manifests.safeParse(manifests ?? {});
    if (!known.success) throw new Error(`sdkMcpServerManifests: ${firstIssue(known.error)}`);
    const defined: ProgramTool[] = [];
    for (const server of new Set(servers)) {
      this.#servers.set(server, null);
      const { tools } = known.data[server]?.toolsListResult ?? (await this.#list(server));
      for (const tool of tools) {
        const name = `mcp__${server}__${tool.name}`;
        if (!/^[A-Za-z0-9_-]{1,64}$/.test(name))
          throw new Error(
            `mcpServers: "${name}" is not a name that a tool can have: up to 64 letters, digits, _ and -`,
          );
        this.#routes.set(name, { server, tool: tool.name });
        defined.push(definitionOf(name, tool));
      }
    }
    return defined;
  }

  /** Handles an event of the session: a call of a tool of the program is taken when the cluster has authorized it. */
  event(event: SessionEvent): void {
    if (this.#routes.size === 0) return;
    if (event.type === "tool.started") {
      this.#expect(event.turnId, event.callId, event.tool);
      this.#calls.get(event.callId)?.changed.resolve();
    }
    if (event.type === "turn.finished") {
      for (const call of this.#calls.values()) if (call.turnId === event.turnId) this.#end(call);
    }
    if (event.type !== "message") return;
    const { turnId, parts } = event.message;
    for (const part of parts) {
      if (part.type === "tool_call") this.#expect(turnId, part.id, part.name);
      const call = part.type === "tool_result" ? this.#calls.get(part.id) : undefined;
      if (call !== undefined) this.#end(call);
    }
  }

  close(): void {
    for (const call of this.#calls.values()) this.#end(call);
  }

  #expect(turnId: string, callId: string, name: string): void {
    const route = this.#routes.get(name);
    if (route === undefined || this.#calls.has(callId)) return;
    const call = { ...route, turnId, callId, over: new AbortController(), changed: Promise.withResolvers<void>() };
    this.#calls.set(callId, call);
    this.#deps.start(this.#serve(call));
  }

  #end(call: Call): void {
    this.#calls.delete(call.callId);
    call.over.abort();
    call.changed.resolve();
  }

  /** Takes the call when it is offered, and answers it. Never rejects. */
  async #serve(call: Call): Promise<void> {
    const { signal } = call.over;
    for (;;) {
      const input = await this.#take(call);
      if (signal.aborted) return;
      if (input !== null) return this.#run(call, input);
      const later = new AbortController();
      await Promise.race([
        call.changed.promise,
        delay(pollMs, undefined, { signal: later.signal }).catch(() => undefined),
      ]);
      later.abort();
      call.changed = Promise.withResolvers();
      if (signal.aborted) return;
    }
  }

  /** The arguments; null: the call is not offered yet, or the gateway does not answer. */
  async #take({ server, tool, turnId: turn, callId }: Call): Promise<string | null> {
    const request = { turn, call: callId, by: this.#id, holdMs };
    try {
      const { input } = await this.#deps.gateway.run(api.takeProgramCall, request);
      this.#problem = null;
      return input;
    } catch (error) {
      const problem = errorMessage(error);
      if (problem !== this.#problem) {
        this.#deps.note(`a call of ${server}'s tool ${tool} could not be taken: ${problem}; trying again`);
      }
      this.#problem = problem;
      return null;
    }
  }

  async #run(call: Call, input: string): Promise<void> {
    const renewal = setInterval(() => void this.#take(call), renewMs);
    try {
      const { content, isError } = await this.#ask(call, input);
      if (!call.over.signal.aborted) await this.#answer(call, content, isError);
    } finally {
      clearInterval(renewal);
      this.#calls.delete(call.callId);
    }
  }

  async #ask({ server, tool, over }: Call, input: string): Promise<{ content: string; isError: boolean }> {
    const { external } = this.#deps;
    try {
      if (external.has(server)) {
        return resultText(await external.call(server, tool, parseJsonObject(input) ?? {}, over.signal));
      }
      await this.#begun(server);
      const params = { name: tool, arguments: JSON.parse(input) as unknown };
      return resultText(await this.#send(server, "tools/call", params, over.signal));
    } catch (error) {
      const reason = errorMessage(error);
      return { content: `No result: ${reason}. Whether the call took effect is unknown.`, isError: true };
    }
  }

  /** Repeats until the gateway has the answer, or the call has ended. */
  async #answer({ turnId: turn, callId, over }: Call, content: string, isError: boolean): Promise<void> {
    const { gateway, note } = this.#deps;
    const until = Date.now() + holdMs;
    for (;;) {
      try {
        await gateway.run(api.answerProgramCall, { turn, call: callId, by: this.#id, content, isError });
        return;
      } catch (error) {
        if (error instanceof RequestRejectedError || over.signal.aborted || Date.now() > until) {
          note(`the result of a call was not stored: ${errorMessage(error)}`);
          return;
        }
        await delay(pollMs);
      }
    }
  }

  async #list(server: string): Promise<z.output<typeof ToolList>> {
    const { external } = this.#deps;
    if (!external.has(server)) await this.#begun(server);
    const answer = external.has(server) ? await external.list(server) : await this.#send(server, "tools/list", {});
    const listed = ToolList.safeParse(answer);
    if (listed.success) return listed.data;
    throw new Error(`mcpServers: ${server} has no list of tools: ${firstIssue(listed.error)}`);
  }

  /** Begins the protocol with a server, once. */
  #begun(server: string): Promise<unknown> {
    const known = this.#servers.get(server);
    if (known !== null && known !== undefined) return known;
    const begun = this.#send(server, "initialize", { protocolVersion, capabilities: {}, clientInfo }).then(() =>
      this.#post(server, { method: "notifications/initialized" }),
    );
    this.#servers.set(server, begun);
    begun.catch(() => this.#servers.set(server, null));
    return begun;
  }

  /** The result of a request. Rejects with the server's or the program's error. */
  async #send(server: string, method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    this.#messages += 1;
    const answer = Answer.safeParse(await this.#post(server, { id: this.#messages, method, params }, signal));
    if (!answer.success) throw new Error(`the answer to ${method} is not valid: ${firstIssue(answer.error)}`);
    const { error, result } = answer.data.mcp_response;
    if (error !== undefined) throw new Error(error.message);
    return result;
  }

  #post(server: string, message: object, signal?: AbortSignal): Promise<unknown> {
    const request = { subtype: "mcp_message", server_name: server, message: { jsonrpc: "2.0", ...message } };
    return this.#deps.requests.ask(request, omitUndefined({ signal }));
  }
}

/** Longer texts are cut: the limits of a session's tools count all of them together. */
const maxDescription = 4_000;

function definitionOf(
  name: string,
  { title, description, inputSchema, annotations }: z.output<typeof Tool>,
): ProgramTool {
  const { $schema: _, ...schema } = inputSchema ?? {};
  return omitUndefined({
    name,
    description: (description ?? title ?? "").slice(0, maxDescription),
    inputSchema: { ...schema, type: "object" },
    readOnly: annotations?.readOnlyHint,
    destructive: annotations?.destructiveHint,
    openWorld: annotations?.openWorldHint,
  });
}
