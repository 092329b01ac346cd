// A control group for one command: it limits processes and memory of the whole tree, whoever runs it. Works where the service
// may make groups (as root, version 1 or 2 mounted); elsewhere the limits of `limits.ts` and `watch.ts` stand alone.
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { errnoOf } from "../workspace/errors.ts";
import type { ExecLimits } from "./limits.ts";

export interface ControlGroups {
  create(name: string, limits: ExecLimits): Promise<ControlGroup | undefined>;
}

export interface ControlGroup {
  /** A process that writes `0` into each of them is in the group, with all it starts. */
  readonly joinFiles: readonly string[];
  /** Which limits were hit. */
  hits(): Promise<{ memory: boolean; processes: boolean }>;
  /** Kills what is left and removes the group. */
  remove(): Promise<void>;
}

const parent = "parley-exec";

/** Finds where groups can be made; undefined where they cannot. `base` is another place in tests. */
export async function findControlGroups(base = "/sys/fs/cgroup"): Promise<ControlGroups | undefined> {
  for (const layout of [unified(base), legacy(base)]) {
    if (await usable(layout)) return { create: (name, limits) => createGroup(layout, name, limits) };
  }
  return undefined;
}

/** One hierarchy of groups a command is put into, with the files that limit it there. */
interface Hierarchy {
  folder: string;
  settings(limits: ExecLimits): readonly (readonly [file: string, value: string])[];
  /** File and key of the counter of refusals; the whole file is the number when there is no key. */
  counters: readonly { limit: "memory" | "processes"; file: string; key: string }[];
}

interface Layout {
  hierarchies: readonly Hierarchy[];
  /** Version 2: controllers to hand down to children of `base` and of the parent group. */
  handDown?: { base: string; controllers: string };
}

function unified(base: string): Layout {
  return {
    hierarchies: [
      {
        folder: join(base, parent),
        settings: (limits) => [
          ["pids.max", String(limits.maxProcesses)],
          ["memory.max", String(limits.maxMemoryBytes)],
        ],
        counters: [
          { limit: "processes", file: "pids.events", key: "max" },
          { limit: "memory", file: "memory.events", key: "oom_kill" },
        ],
      },
    ],
    handDown: { base, controllers: "+pids +memory" },
  };
}

function legacy(base: string): Layout {
  return {
    hierarchies: [
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
    ],
  };
}

/** Tries it: a group with a limit is made and removed. */
async function usable(layout: Layout): Promise<boolean> {
  try {
    if (layout.handDown !== undefined) {
      const { base, controllers } = layout.handDown;
      await writeFile(join(base, "cgroup.subtree_control"), controllers, { flag: "r+" });
    }
    for (const { folder } of layout.hierarchies) await mkdir(folder, { recursive: true });
    if (layout.handDown !== undefined) {
      for (const { folder } of layout.hierarchies) {
        await writeFile(join(folder, "cgroup.subtree_control"), layout.handDown.controllers, { flag: "r+" });
      }
    }
    for (const { folder } of layout.hierarchies) await removeLeftBehind(folder);
    const trial = await createGroup(layout, "trial", {
      maxProcesses: 16,
      maxMemoryBytes: 16 * 1024 * 1024,
    });
    await trial?.remove();
    return trial !== undefined;
  } catch {
    return false;
  }
}

async function createGroup(
  layout: Layout,
  name: string,
  limits: Pick<ExecLimits, "maxProcesses" | "maxMemoryBytes">,
): Promise<ControlGroup | undefined> {
  // The maker's number first: what a killed service leaves behind is known by it.
  const folders = layout.hierarchies.map(({ folder }) => join(folder, `${process.pid}-${name}`));
  const remove = async () => {
    for (const folder of folders) await removeFolder(folder);
  };
  try {
    for (const [index, hierarchy] of layout.hierarchies.entries()) {
      const folder = folders[index] ?? "";
      await mkdir(folder);
      // "r+": the kernel makes these files; one that is missing must not be created.
      for (const [file, value] of hierarchy.settings(limits as ExecLimits)) {
        await writeFile(join(folder, file), value, { flag: "r+" });
      }
    }
  } catch {
    await remove();
    return undefined;
  }
  return {
    joinFiles: folders.map((folder) => join(folder, "cgroup.procs")),
    hits: async () => {
      const hit = { memory: false, processes: false };
      for (const [index, hierarchy] of layout.hierarchies.entries()) {
        for (const counter of hierarchy.counters) {
          const text = await readFile(join(folders[index] ?? "", counter.file), "utf8").catch(() => "");
          const match = new RegExp(`^${counter.key} (\\d+)$`, "m").exec(text);
          if (match !== null && Number(match[1]) > 0) hit[counter.limit] = true;
        }
      }
      return hit;
    },
    remove,
  };
}

/** A group can be removed only when it is empty, and a killed process leaves it a moment later. */
async function removeFolder(folder: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const members = await readFile(join(folder, "cgroup.procs"), "utf8").catch(() => undefined);
    if (members === undefined) return;
    for (const pid of members.split("\n").filter((line) => line !== "")) killQuietly(Number(pid));
    try {
      await rmdir(folder);
      return;
    } catch {
      await delay(10);
    }
  }
}

/** Removes groups whose maker is gone; those in use stay. */
async function removeLeftBehind(parentFolder: string): Promise<void> {
  for (const entry of await readdir(parentFolder, { withFileTypes: true })) {
    const maker = Number(/^(\d+)-/.exec(entry.name)?.[1] ?? 0);
    if (!entry.isDirectory() || maker === 0 || maker === process.pid || isAlive(maker)) continue;
    await rmdir(join(parentFolder, entry.name)).catch(() => undefined);
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) !== "ESRCH";
  }
}

function killQuietly(pid: number): void {
  try {
    if (pid > 1) process.kill(pid, "SIGKILL");
  } catch {
    // Already gone.
  }
}
