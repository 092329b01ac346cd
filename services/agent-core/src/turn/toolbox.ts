// The tools of one turn: those of the tool-runners and agent-core's own, by every name they go by, within the policy.
import type { ToolDescriptor } from "@parley/contracts";
import type { LocalTool } from "../tools/local-tool.ts";
import type { Policy } from "./policy.ts";

export interface TurnTool {
  descriptor: ToolDescriptor;
  /** Undefined: a tool-runner carries it out. */
  local: LocalTool | undefined;
}

export class Toolbox {
  /** Sorted by name: what the model may be shown. */
  readonly descriptors: readonly ToolDescriptor[];
  /** What `exec` runs stays behind a wall. */
  readonly contained: boolean;
  readonly #byName = new Map<string, TurnTool>();

  constructor(remote: readonly ToolDescriptor[], contained: boolean, local: readonly LocalTool[], policy: Policy) {
    this.contained = contained;
    const tools = [
      ...remote.map((descriptor): TurnTool => ({ descriptor, local: undefined })),
      ...local.map((tool): TurnTool => ({ descriptor: tool.descriptor, local: tool })),
    ].filter(({ descriptor }) => policy.hasTool(descriptor.name));
    this.descriptors = tools.map(({ descriptor }) => descriptor).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const tool of tools) {
      for (const alias of tool.descriptor.aliases) this.#byName.set(alias, tool);
    }
    // A tool's own name counts more than another one's alias.
    for (const tool of tools) this.#byName.set(tool.descriptor.name, tool);
  }

  find(name: string): TurnTool | undefined {
    return this.#byName.get(name);
  }

  /** The tool's own name, where it goes by several. */
  nameOf(name: string): string {
    return this.find(name)?.descriptor.name ?? name;
  }

  /** For the model that named a tool that is not there. */
  unknown(name: string): string {
    const names = this.descriptors.map((tool) => tool.name);
    return `Tool not found: ${name}. ${names.length === 0 ? "You have no tools here." : `The tools you have are: ${names.join(", ")}.`}`;
  }
}
