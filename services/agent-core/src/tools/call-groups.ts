// Which calls of a step run in parallel; pure. Results are always in call order.
import { posix } from "node:path";
import { parseJsonObject } from "@parley/kit";
import type { ToolDescriptor, ToolExecution, ToolStep } from "@parley/contracts";

export interface PlannedCall {
  step: ToolStep;
  /** Undefined: unknown tool. */
  tool: Pick<ToolDescriptor, "name" | "readOnly" | "resource" | "timeoutMs"> | undefined;
}

/**
 * Groups calls that are launched together. `serial`: one at a time. `readonly_parallel`: adjacent read-only calls
 * together. `parallel`: adjacent calls together unless two of them write the same resource; a call with unknown effect
 * runs alone.
 */
export function callGroups<C extends PlannedCall>(
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

/** An absolute and a relative path may name the same file; they are treated as equal when one ends with the other. */
function mayBeSame(a: Resource, b: Resource): boolean {
  if (a.kind !== b.kind) return false;
  return a.name === b.name || a.name.endsWith(`/${b.name}`) || b.name.endsWith(`/${a.name}`);
}

/** Marks a call whose written resource is not known. */
const unknown = Symbol("unknown");

/** The resource a call writes: null when it writes none that others could, `unknown` when it could be any. */
function resourceOf({ step, tool }: PlannedCall): Resource | null | typeof unknown {
  if (tool === undefined || tool.readOnly || tool.resource.kind === "none") return null;
  const { kind, argument } = tool.resource;
  if (argument === undefined) return unknown;
  const value = argumentOf(step.input, argument);
  if (value === undefined) return unknown;
  return { kind, name: kind === "path" ? posix.normalize(value) : value };
}

function argumentOf(input: string, name: string): string | undefined {
  const value = parseJsonObject(input)?.[name];
  return typeof value === "string" ? value : undefined;
}
