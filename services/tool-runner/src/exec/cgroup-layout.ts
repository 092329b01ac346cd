// Where control groups are on this machine, and which files limit and count what there: version 2 in one hierarchy, version 1 in one for
// each controller. Pure.
import { join } from "node:path";
import type { ExecLimits } from "./limits.ts";

/** One hierarchy of groups a command is put into, with the files that limit it there. */
interface Hierarchy {
  folder: string;
  settings(limits: GroupLimits): readonly (readonly [file: string, value: string])[];
  /** File and key of the counters of refusals. */
  counters: readonly { limit: "memory" | "processes"; file: string; key: string }[];
}

export interface Layout {
  hierarchies: readonly Hierarchy[];
  /** CPU is limited here, too. */
  cpu: boolean;
  /** Version 2: controllers to hand down to children of `base` and of the parent group. */
  handDown?: { base: string; controllers: string };
}

export type GroupLimits = Pick<ExecLimits, "maxProcesses" | "maxMemoryBytes" | "maxCpus">;

const parent = "parley-exec";
/** Of the CPU quota, in microseconds: the kernel's own default. */
const periodUs = 100_000;
/** The kernel takes no less. */
const leastQuotaUs = 1_000;

/** What may be tried, the best first; without CPU where no limit of it is wanted or none can be set. */
export function layouts(base: string, cpu: boolean): Layout[] {
  const counted = [unified(base, false), legacy(base, false)];
  return cpu ? [unified(base, true), legacy(base, true), ...counted] : counted;
}

function unified(base: string, cpu: boolean): Layout {
  return {
    hierarchies: [
      {
        folder: join(base, parent),
        settings: (limits) => [
          ["pids.max", String(limits.maxProcesses)],
          ["memory.max", String(limits.maxMemoryBytes)],
          ...(cpu ? [["cpu.max", `${quotaUs(limits)} ${periodUs}`] as const] : []),
        ],
        counters: [
          { limit: "processes", file: "pids.events", key: "max" },
          { limit: "memory", file: "memory.events", key: "oom_kill" },
        ],
      },
    ],
    cpu,
    handDown: { base, controllers: cpu ? "+pids +memory +cpu" : "+pids +memory" },
  };
}

function legacy(base: string, cpu: boolean): Layout {
  const counted: Hierarchy[] = [
    {
      folder: join(base, "pids", parent),
      settings: (limits) => [["pids.max", String(limits.maxProcesses)]],
      counters: [{ limit: "processes", file: "pids.events", key: "max" }],
    },
    {
      folder: join(base, "memory", parent),
      settings: (limits) => [["memory.limit_in_bytes", String(limits.maxMemoryBytes)]],
      counters: [{ limit: "memory", file: "memory.oom_control", key: "oom_kill" }],
    },
  ];
  const limited: Hierarchy = {
    folder: join(base, "cpu", parent),
    settings: (limits) => [
      ["cpu.cfs_period_us", String(periodUs)],
      ["cpu.cfs_quota_us", String(quotaUs(limits))],
    ],
    counters: [],
  };
  return { hierarchies: cpu ? [...counted, limited] : counted, cpu };
}

function quotaUs({ maxCpus = 1 }: GroupLimits): number {
  return Math.max(leastQuotaUs, Math.round(maxCpus * periodUs));
}
