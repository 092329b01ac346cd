// What a program adds to the session of its run, as long as the run lasts: the tools of its MCP servers, and sub-agents.

import { errorMessage } from "@parley/contracts";
import type { SdkInit } from "@parley/projections";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import type { AgentInfo } from "./control.ts";
import type { RunSession } from "./place.ts";
import { readAgents } from "./program-agents.ts";
import type { ProgramServers } from "./program-servers.ts";

export interface ProgramSessionDeps {
  readonly gateway: Pick<Gateway, "run">;
  readonly servers: ProgramServers;
  readonly note: (text: string) => void;
  /** Opens the session of the run, if there is none yet. */
  readonly open: () => Promise<RunSession>;
}

export class ProgramSession {
  readonly #deps: ProgramSessionDeps;
  #opened: RunSession | null = null;
  #agents: string[] = [];

  constructor(deps: ProgramSessionDeps) {
    this.#deps = deps;
  }

  /** What the messages of the run need to reach the session. */
  get extras(): Pick<RunSession, "thread"> {
    return this.#opened?.thread === undefined ? {} : { thread: this.#opened.thread };
  }

  /** The agent's data with what was added. */
  added(info: SdkInit): SdkInit {
    return { ...this.#deps.servers.added(info), agents: [...new Set([...info.agents, ...this.#agents])] };
  }

  /**
   * Adds the tools of the servers with these names, and sub-agents, which are returned. Throws Error with the reason when the session cannot
   * have them.
   */
  async define(names: readonly string[], manifests: unknown, definitions: unknown): Promise<AgentInfo[]> {
    const { gateway, open } = this.#deps;
    const programAgents = readAgents(definitions);
    const programTools = names.length === 0 ? [] : await this.#toolsOf(names, manifests);
    this.#agents = Object.keys(programAgents);
    if (programTools.length > 0 || this.#agents.length > 0) {
      this.#opened = await open();
      // Null also removes what a killed run has left.
      const overrides = {
        programTools: programTools.length === 0 ? null : programTools,
        programAgents: this.#agents.length === 0 ? null : programAgents,
      };
      await gateway.run(api.updateSession, { id: this.#opened.sessionId, overrides });
    }
    return Object.entries(programAgents).map(([name, { description }]) => ({ name, description }));
  }

  async #toolsOf(names: readonly string[], manifests: unknown) {
    const { gateway, servers } = this.#deps;
    const ofCluster = await gateway.run(api.servers);
    const taken = names.find((name) => ofCluster.servers.some(({ server }) => server === name));
    if (taken !== undefined) throw new Error(`mcpServers: the cluster has a server "${taken}": choose another name`);
    return servers.define(names, manifests);
  }

  /** Removes what was added. Never rejects. */
  async release(): Promise<void> {
    const { gateway, note } = this.#deps;
    if (this.#opened === null) return;
    const overrides = { programTools: null, programAgents: null };
    try {
      await gateway.run(api.updateSession, { id: this.#opened.sessionId, overrides });
    } catch (error) {
      note(`the tools and sub-agents of the program were not removed from the session: ${errorMessage(error)}`);
    }
  }
}
