// One control group per command: limits processes, memory and CPU of its whole process tree. Needs the right to create groups
// (root, version 1 or 2 mounted); elsewhere only the limits of `limits.ts` and `run-command.ts` apply.
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { errnoOf } from "../workspace/errors.ts";
import { layouts, type GroupLimits, type Layout } from "./cgroup-layout.ts";

export interface ControlGroups {
  /** Whether the groups also limit CPU. */
  readonly cpu: boolean;
  create(name: string, limits: GroupLimits): Promise<ControlGroup | undefined>;
}

export interface ControlGroup {
  /** A process that writes `0` into each of these files joins the group with all its descendants. */
  readonly joinFiles: readonly string[];
  /** Reports which limits were hit. */
  limitsReached(): Promise<{ memory: boolean; processes: boolean }>;
  /** Kills the remaining processes and removes the group. */
  remove(): Promise<void>;
}

/**
 * Finds a place where groups can be created; undefined when there is none. With `cpu`, layouts that also limit CPU are tried first.
 * Tests pass another `base`.
 */
export async function findControlGroups({ cpu = false, base = "/sys/fs/cgroup" } = {}): Promise<
  ControlGroups | undefined
> {
  for (const layout of layouts(base, cpu)) {
    if (await usable(layout)) return { cpu: layout.cpu, create: (name, limits) => createGroup(layout, name, limits) };
  }
  return undefined;
}

/** Creates and removes a trial group with a limit. */
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

async function createGroup(layout: Layout, name: string, limits: GroupLimits): Promise<ControlGroup | undefined> {
  // The creator's pid comes first: it identifies groups that a killed service left over.
  const folders = layout.hierarchies.map(({ folder }) => join(folder, `${process.pid}-${name}`));
  const remove = async () => {
    for (const folder of folders) await removeFolder(folder);
  };
  try {
    for (const [index, hierarchy] of layout.hierarchies.entries()) {
      const folder = folders[index] ?? "";
      await mkdir(folder);
      // "r+": the kernel provides these files; a missing one must not be created.
      for (const [file, value] of hierarchy.settings(limits)) {
        await writeFile(join(folder, file), value, { flag: "r+" });
      }
    }
  } catch {
    await remove();
    return undefined;
  }
  return {
    joinFiles: folders.map((folder) => join(folder, "cgroup.procs")),
    limitsReached: async () => {
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

/** Only an empty group can be removed, and a killed process leaves it with a short delay. */
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

/** Removes groups whose creator has ended; groups in use stay. */
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
