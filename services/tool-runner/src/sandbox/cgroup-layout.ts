// Where control groups live on this machine, and which files set limits and count hits: one hierarchy in version 2,
// one per controller in version 1. Pure.
import { join } from "node:path";
import type { ExecLimits } from "./limits.ts";

/** One cgroup hierarchy, with the files that limit a command in it. */
interface Hierarchy {
  folder: string;
  settings(limits: GroupLimits): readonly (readonly [file: string, value: string])[];
  /** File and key of each counter of limit hits. */
  counters: readonly { limit: "memory" | "processes"; file: string; key: string }[];
}

export interface Layout {
  hierarchies: readonly Hierarchy[];
  /** Whether this layout also limits CPU. */
  cpu: boolean;
  /** Version 2: controllers to enable for children of `base` and of the parent group. */
  handDown?: { base: string; controllers: string };
}

export type GroupLimits = Pick<ExecLimits, "maxProcesses" | "maxMemoryBytes" | "maxCpus">;

const parent = "parley-exec";
/** Period of the CPU quota in microseconds: the kernel's default. */
const periodUs = 100_000;
/** Smallest quota that the kernel accepts. */
const leastQuotaUs = 1_000;

/** Layouts to try, best first; without CPU where no CPU limit is wanted or possible. */
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
