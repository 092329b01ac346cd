// The tools of one turn that its policy permits: those of the tool-runners and agent-core's own, by all their names.
import type { Containment, Message, ToolDescriptor } from "@parley/contracts";
import type { LocalTool } from "./local-tool.ts";
import { callTool, searchDescription, searchToolName, toolSearchTool } from "./tool-search.ts";
import { isDeferrable, listDeferred, type SearchSettings } from "./deferred-tools.ts";
import type { TurnPolicy } from "../policy/turn-policy.ts";

export interface TurnTool {
  descriptor: ToolDescriptor;
  /** Undefined: a tool-runner runs the tool. */
  local: LocalTool | undefined;
}

export class Toolbox {
  /** The tools that the model may call, sorted by name. */
  readonly descriptors: readonly ToolDescriptor[];
  /** What separates commands of `exec` from the service. */
  readonly containment: Containment;
  readonly #byName = new Map<string, TurnTool>();
  /** Tools that the model finds with `tool_search`; empty: all are in the prompt. */
  readonly #deferred: readonly ToolDescriptor[];
  readonly #shown = new Map<string, readonly ToolDescriptor[]>();

  constructor(
    remote: readonly ToolDescriptor[],
    containment: Containment,
    local: readonly LocalTool[],
    policy: Pick<TurnPolicy, "hasTool">,
    search: SearchSettings,
  ) {
    this.containment = containment;
    const tools = [
      ...remote.map((descriptor): TurnTool => ({ descriptor, local: undefined })),
      ...local.map((tool): TurnTool => ({ descriptor: tool.descriptor, local: tool })),
    ].filter(({ descriptor }) => policy.hasTool(descriptor.name, descriptor.aliases));
    const found = tools.map(({ descriptor }) => descriptor).sort(byName);
    this.#deferred = isDeferrable(found, search);
    const searched = this.defers ? this.#deferred : found;
    const finders = [toolSearchTool({ descriptors: searched, find: (name) => this.find(name)?.descriptor }), callTool];
    // A session whose prefix was fixed when there were more tools may still call these.
    for (const tool of finders) this.#know({ descriptor: tool.descriptor, local: tool });
    for (const tool of tools) this.#know(tool);
    const more = this.#deferred.length === 0 ? [] : finders.map(({ descriptor }) => descriptor);
    this.descriptors = [...found, ...more].sort(byName);
    // A tool's own name takes precedence over another tool's alias.
    for (const tool of tools) this.#byName.set(tool.descriptor.name, tool);
  }

  #know(tool: TurnTool): void {
    for (const name of [...tool.descriptor.aliases, tool.descriptor.name]) this.#byName.set(name, tool);
  }

  find(name: string): TurnTool | undefined {
    return this.#byName.get(name);
  }

  /** The tool's own name for any of its names. */
  nameOf(name: string): string {
    return this.find(name)?.descriptor.name ?? name;
  }

  /** The tool's own name, then its aliases; for an unknown tool the given name only. */
  namesOf(name: string): readonly string[] {
    const descriptor = this.find(name)?.descriptor;
    return descriptor === undefined ? [name] : [descriptor.name, ...descriptor.aliases];
  }

  /** Whether some tools are deferred. */
  get defers(): boolean {
    return this.#deferred.length > 0;
  }

  /**
   * Tools with full definitions in the prompt, sorted by name: of the deferred ones only `called`. Equal names return
   * the same list.
   */
  shown(called: ReadonlySet<string>): readonly ToolDescriptor[] {
    if (!this.defers) return this.descriptors;
    const names = new Set([...called].map((name) => this.nameOf(name)));
    const hidden = this.#deferred.filter(({ name }) => !names.has(name));
    const key = hidden.map(({ name }) => name).join();
    let shown = this.#shown.get(key);
    if (shown === undefined) {
      shown = this.#without(hidden);
      this.#shown.set(key, shown);
    }
    return shown;
  }

  #without(hidden: readonly ToolDescriptor[]): readonly ToolDescriptor[] {
    const hiddenTools = new Set(hidden);
    const description = searchDescription(listDeferred(hidden));
    return this.descriptors.flatMap((tool) => {
      if (hiddenTools.has(tool)) return [];
      return tool.name === searchToolName ? [{ ...tool, description }] : [tool];
    });
  }

  /** The tool result for a call of an unknown tool. */
  unknown(name: string): string {
    const names = this.descriptors.map((tool) => tool.name);
    return `Tool not found: ${name}. ${names.length === 0 ? "You have no tools in this session." : `Available tools: ${names.join(", ")}.`}`;
  }
}

function byName(a: ToolDescriptor, b: ToolDescriptor): number {
  return a.name < b.name ? -1 : 1;
}

/** Names under which the messages call tools: a tool that was used recently is likely to be used again. */
export function calledNames(messages: readonly Message[]): Set<string> {
  const names = new Set<string>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const part of message.parts) if (part.type === "tool_call") names.add(part.name);
  }
  return names;
}
