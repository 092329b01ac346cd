// The tools of this deployment by name, and the one place that turns every outcome of a call into a result.
// It does not depend on the bus or the store.
import type { ToolDescriptor } from "@parley/contracts";
import { failure, type Tool, type ToolContext, type ToolOutput } from "./tool.ts";
import { TextJobError } from "../text/text-worker.ts";
import { describeFileError } from "../workspace/errors.ts";

export interface Registry {
  /** Sorted by name. */
  readonly descriptors: readonly ToolDescriptor[];
  /** Finds a tool by its name or alias. */
  find(name: string): Tool | undefined;
  /** Waits for a tool whose server is starting, with a time limit; resolves immediately for all others. */
  ready?(name: string, signal: AbortSignal): Promise<void>;
}

/** Throws when two tools have the same name or alias, which is a bug. */
export function createRegistry(tools: readonly Tool[]): Registry {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (byName.has(tool.descriptor.name)) throw new Error(`duplicate tool name ${tool.descriptor.name}`);
    byName.set(tool.descriptor.name, tool);
  }
  const byAlias = new Map<string, Tool>();
  for (const tool of tools) {
    for (const alias of tool.descriptor.aliases) {
      if (byName.has(alias) || byAlias.has(alias)) throw new Error(`duplicate tool name ${alias}`);
      byAlias.set(alias, tool);
    }
  }
  const descriptors = [...byName.values()]
    .map((tool) => tool.descriptor)
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  return { descriptors, find: (name) => byName.get(name) ?? byAlias.get(name) };
}

/** Runs a call and always returns a result; passes unexpected exceptions to `onBug`. */
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
    return failure(`Unknown tool "${name}". Available tools: ${names}.`);
  }
  let args: unknown;
  try {
    args = inputJson.trim() === "" ? {} : JSON.parse(inputJson);
  } catch (error) {
    return failure(
      `The arguments for ${name} are not valid JSON: ${error instanceof Error ? error.message : "unreadable"}.`,
    );
  }
  try {
    return await tool.call(args, context);
  } catch (error) {
    const known = error instanceof TextJobError ? error.message : describeFileError(error);
    if (known !== undefined) return failure(known);
    if (!context.signal.aborted) onBug(error);
    return failure(`${name} failed with an internal error. The call is not at fault; the error was logged.`);
  }
}
