// What a turn of a session is run with: its policy, its tools, and what its model is sent before the conversation.
import type { ClaimedTurn, SessionState } from "@parley/contracts";
import { localTools } from "../tools/local-tools.ts";
import type { LocalTool } from "../tools/local-tool.ts";
import type { ToolCatalog } from "./catalog.ts";
import { policyOf, type Policy } from "./policy.ts";
import { mayRenew, prefixOf, type Prefix } from "./prefix.ts";
import { systemPrompt } from "./system-prompt.ts";
import { Toolbox } from "./toolbox.ts";
import type { TurnDeps, TurnStart } from "./turn.ts";
import type { View } from "./view.ts";

export class SessionSetup {
  readonly #deps: TurnDeps;
  readonly #catalog: ToolCatalog;
  readonly #local: readonly LocalTool[];

  constructor(deps: TurnDeps, catalog: ToolCatalog) {
    this.#deps = deps;
    this.#catalog = catalog;
    this.#local = localTools(deps.settings);
  }

  async startOf(claimed: ClaimedTurn, session: SessionState, view: View, steerable: boolean): Promise<TurnStart> {
    const { tools, contained } = await this.#catalog.tools();
    const policy = policyOf(this.#deps.settings, session);
    const toolbox = new Toolbox(tools, contained, this.#local, policy);
    const assemble = async (now: Policy) => this.#assemble(now, toolbox);
    const fresh = await assemble(policy);
    const kept = session.prefixHash === null ? undefined : await this.#kept(session.prefixHash, fresh, view);
    const prefix = kept ?? fresh;
    return {
      claimed,
      session,
      view,
      toolbox,
      prefix,
      newPrefix: prefix.hash !== session.prefixHash,
      assemble,
      steerable,
    };
  }

  /** The session's own prefix, unless it may take the new one. */
  async #kept(hashed: string, fresh: Prefix, view: View): Promise<Prefix | undefined> {
    if (hashed === fresh.hash || mayRenew(view, Date.now())) return fresh;
    return this.#deps.prefixes.load(hashed, this.#deps.storeTimeoutMs);
  }

  #assemble(policy: Policy, toolbox: Toolbox): Prefix {
    return prefixOf(systemPrompt(policy.systemPrompt), toolbox.descriptors);
  }
}
