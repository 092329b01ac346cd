// The tools of this deployment by name, and the one place where a call becomes a result whatever happens inside.
// It does not know the bus or the store.
import type { ToolDescriptor } from "@parley/contracts";
import { failure, type Tool, type ToolContext, type ToolOutput } from "./tool.ts";
import { TextJobError } from "./text/text-worker.ts";
import { describeFileError } from "./workspace/errors.ts";

export interface Registry {
  /** Sorted by name. */
  readonly descriptors: readonly ToolDescriptor[];
  /** By its name, or by another name it is known by. */
  find(name: string): Tool | undefined;
  /** Waits for a tool that is about to come, within bounds; resolves at once for every other. */
  ready?(name: string, signal: AbortSignal): Promise<void>;
}

/** Two tools of one name or alias are a bug and throw. */
export function createRegistry(tools: readonly Tool[]): Registry {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (byName.has(tool.descriptor.name)) throw new Error(`two tools are named ${tool.descriptor.name}`);
    byName.set(tool.descriptor.name, tool);
  }
  const byAlias = new Map<string, Tool>();
  for (const tool of tools) {
    for (const alias of tool.descriptor.aliases) {
      if (byName.has(alias) || byAlias.has(alias)) throw new Error(`two tools are named ${alias}`);
      byAlias.set(alias, tool);
    }
  }
  const descriptors = [...byName.values()]
    .map((tool) => tool.descriptor)
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return { descriptors, find: (name) => byName.get(name) ?? byAlias.get(name) };
}

/** Runs a call and answers with a result in every case; `onBug` is told of exceptions. */
export async function runTool(
  registry: Registry,
  name: string,
  inputJson: string,
  context: ToolContext,
  onBug: (error: unknown) => void,
): Promise<ToolOutput> {
  const tool = registry.find(name);
  if (tool === undefined) {
    const names = registry.descriptors.map((descriptor) => descriptor.name).join(", ");
    return failure(`There is no tool named "${name}". The tools are: ${names}.`);
  }
  let args: unknown;
  try {
    args = inputJson.trim() === "" ? {} : JSON.parse(inputJson);
  } catch (error) {
    return failure(`The arguments of ${name} are not JSON: ${error instanceof Error ? error.message : "unreadable"}.`);
  }
  try {
    return await tool.call(args, context);
  } catch (error) {
    const known = error instanceof TextJobError ? error.message : describeFileError(error);
    if (known !== undefined) return failure(known);
    if (!context.signal.aborted) onBug(error);
    return failure(`${name} failed inside: this is a fault of the tool, not of the call. It has been logged.`);
  }
}
