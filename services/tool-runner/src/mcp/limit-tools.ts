// Fits the tools of all servers into the size limit of the catalog. Pure. It first shortens the descriptions of the largest server,
// repeatedly; then it drops the last tools of each server.
import type { Tool as ServerTool } from "@modelcontextprotocol/client";
import type { ToolDescriptor } from "@parley/contracts";
import { describeTool } from "./describe-tool.ts";
import type { McpServerConfig } from "./server-config.ts";

export interface Listed {
  plan: McpServerConfig;
  tools: readonly ServerTool[];
}

export interface ToolBudget {
  server: string;
  tool: ServerTool;
  descriptor: ToolDescriptor;
}

/** Maximum characters of a tool's description: the default, then two shorter steps. */
const descriptionSteps = [1_500, 500, 150];

interface Share {
  plan: McpServerConfig;
  tools: readonly ServerTool[];
  step: number;
  fitting: ToolBudget[];
  bytes: number;
}

/** Returns the tools sorted by name. `maxBytes` limits all descriptors as JSON. */
export function limitTools(
  listed: readonly Listed[],
  maxBytes: number,
): { fitting: ToolBudget[]; leftOut: Map<string, number> } {
  const shares = listed.map((each) => describe({ ...each, step: 0, fitting: [], bytes: 0 }));
  let total = sum(shares);
  while (total > maxBytes) {
    const largest = shares
      .filter(({ step }) => step < descriptionSteps.length - 1)
      .reduce<Share | undefined>(
        (most, share) => (most === undefined || share.bytes > most.bytes ? share : most),
        undefined,
      );
    if (largest === undefined) return deal(shares, maxBytes);
    Object.assign(largest, describe({ ...largest, step: largest.step + 1 }));
    total = sum(shares);
  }
  return { fitting: sorted(shares.flatMap(({ fitting }) => fitting)), leftOut: new Map() };
}

function describe(share: Share): Share {
  const maxDescription = descriptionSteps[share.step] ?? 0;
  const byName = new Map<string, ToolBudget>();
  for (const tool of share.tools) {
    const descriptor = describeTool(share.plan, tool, maxDescription);
    // Drops duplicates when a server lists a name twice.
    if (!byName.has(descriptor.name)) byName.set(descriptor.name, { server: share.plan.name, tool, descriptor });
  }
  const fitting = sorted([...byName.values()]);
  return { ...share, fitting, bytes: fitting.reduce((bytes, { descriptor }) => bytes + size(descriptor), 0) };
}

/** Adds one tool of each server in turn, as long as they fit. */
function deal(shares: readonly Share[], maxBytes: number) {
  const fitting: ToolBudget[] = [];
  const leftOut = new Map<string, number>();
  let room = maxBytes;
  const longest = Math.max(...shares.map((share) => share.fitting.length));
  for (let round = 0; round < longest; round++) {
    for (const { plan, fitting: own } of shares) {
      const next = own[round];
      if (next === undefined) continue;
      const bytes = size(next.descriptor);
      if (bytes <= room) {
        room -= bytes;
        fitting.push(next);
      } else leftOut.set(plan.name, (leftOut.get(plan.name) ?? 0) + 1);
    }
  }
  return { fitting: sorted(fitting), leftOut };
}

function sum(shares: readonly Share[]): number {
  return shares.reduce((bytes, share) => bytes + share.bytes, 0);
}

function size(descriptor: ToolDescriptor): number {
  return Buffer.byteLength(JSON.stringify(descriptor));
}

function sorted(fitting: ToolBudget[]): ToolBudget[] {
  return fitting.toSorted((a, b) => (a.descriptor.name < b.descriptor.name ? -1 : 1));
}
