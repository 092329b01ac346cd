// What a program adds to the session of its run, as long as the run lasts: the tools of its MCP servers.

import { errorMessage } from "@parley/contracts";

import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import type { RunSession } from "./place.ts";
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

  constructor(deps: ProgramSessionDeps) {
    this.#deps = deps;
  }

  /** What the messages of the run need to reach the session. */
  get extras(): Pick<RunSession, "thread"> {
    return this.#opened?.thread === undefined ? {} : { thread: this.#opened.thread };
  }

  /** Adds the tools of the servers with these names. Throws Error with the reason when the session cannot have them. */
  async define(names: readonly string[], manifests: unknown): Promise<void> {
    const { gateway, servers, open } = this.#deps;
    if (names.length === 0) return;
    const ofCluster = await gateway.run(api.servers);
    const taken = names.find((name) => ofCluster.servers.some(({ server }) => server === name));
    if (taken !== undefined) throw new Error(`mcpServers: the cluster has a server "${taken}": choose another name`);
    const programTools = await servers.define(names, manifests);
    if (programTools.length === 0) return;
    this.#opened = await open();
    await gateway.run(api.updateSession, { id: this.#opened.sessionId, overrides: { programTools } });
  }

  /** Removes what was added. Never rejects. */
  async release(): Promise<void> {
    const { gateway, note } = this.#deps;
    if (this.#opened === null) return;
    try {
      await gateway.run(api.updateSession, { id: this.#opened.sessionId, overrides: { programTools: null } });
    } catch (error) {
      note(`the tools of the program were not removed from the session: ${errorMessage(error)}`);
    }
  }
}
