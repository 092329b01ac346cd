// Which of a step's calls run side by side; pure. Results come in call order whatever is chosen.
import { posix } from "node:path";
import type { ToolDescriptor, ToolExecution, ToolStep } from "@parley/contracts";

export interface PlannedCall {
  step: ToolStep;
  /** Undefined: no such tool. */
  tool: Pick<ToolDescriptor, "name" | "readOnly" | "resource" | "timeoutMs"> | undefined;
}

/**
 * Calls in the groups in which they are launched. `serial`: one by one. `readonly_parallel`: neighbours that only read go
 * together. `parallel`: neighbours go together unless two of them write the same resource; a tool of unknown effect goes alone.
 */
export function groups<C extends PlannedCall>(
  calls: readonly C[],
  execution: ToolExecution,
  maxParallel: number,
): C[][] {
  const grouped: C[][] = [];
  for (const call of calls) {
    const last = grouped.at(-1);
    if (last !== undefined && last.length < maxParallel && together(last, call, execution)) last.push(call);
    else grouped.push([call]);
  }
  return grouped;
}

function together(group: readonly PlannedCall[], call: PlannedCall, execution: ToolExecution): boolean {
  if (execution === "serial") return false;
  const reads = (each: PlannedCall) => each.tool?.readOnly ?? true;
  if (group.every(reads) && reads(call)) return true;
  if (execution === "readonly_parallel") return false;
  const written = resourceOf(call);
  return group.every((other) => {
    const otherWritten = resourceOf(other);
    if (written === unknown || otherWritten === unknown) return false;
    return written === null || otherWritten === null || !mayBeSame(written, otherWritten);
  });
}

interface Resource {
  kind: string;
  name: string;
}

/** Of two paths, one whole and one within the workspace, nobody here knows whether they meet: they do if they end alike. */
function mayBeSame(a: Resource, b: Resource): boolean {
  if (a.kind !== b.kind) return false;
  return a.name === b.name || a.name.endsWith(`/${b.name}`) || b.name.endsWith(`/${a.name}`);
}

/** Says that nothing is known of what a call touches. */
const unknown = Symbol("unknown");

/** What a call writes: null where it writes nothing that others could, `unknown` where it could be anything. */
function resourceOf({ step, tool }: PlannedCall): Resource | null | typeof unknown {
  if (tool === undefined || tool.readOnly || tool.resource.kind === "none") return null;
  const { kind, argument } = tool.resource;
  if (argument === undefined) return unknown;
  const value = argumentOf(step.input, argument);
  if (value === undefined) return unknown;
  return { kind, name: kind === "path" ? posix.normalize(value) : value };
}

function argumentOf(input: string, name: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(input);
    const value = typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>)[name] : undefined;
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
