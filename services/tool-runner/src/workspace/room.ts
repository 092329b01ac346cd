// How much may still be written: the workspace has a quota, and its disk keeps some space free. Counting a large tree takes time, so it is counted
// rarely, and earlier where the disk as a whole has gained much since then, which costs one call to know.
import { statfs } from "node:fs/promises";
import { sizeText } from "@parley/contracts";
import { WorkspaceError } from "./errors.ts";
import { bytesBelow, leastBytes } from "./usage.ts";

export interface RoomRules {
  /** What the workspace may take of the disk; 0 = no limit. */
  maxBytes: number;
  /** What stays free on its disk; 0 = nothing. */
  minFreeBytes: number;
}

export const unlimitedRoom: RoomRules = { maxBytes: 0, minFreeBytes: 0 };

/** What a running command may be stopped for. */
type Overfull = "workspace_full" | "disk_full";

/** A command that began above a limit may still write so much: deleting, too, writes a little. */
const slackBytes = 1024 * 1024;
/** Counting takes at most a tenth of the time. */
const restFactor = 9;
/** While a command runs it is counted so often, where that takes no more than a tenth of the time: what others delete meanwhile hides what the disk gains. */
const recountMs = 1_000;
/** What was counted longer ago is counted again before something is refused. */
const freshMs = 30_000;

interface Disk {
  freeBytes: number;
  /** Grows with what is written and with the number of files, whoever writes. */
  takenBytes: number;
}

interface Count {
  bytes: number;
  takenBytes: number;
  at: number;
  tookMs: number;
}

export class Room {
  readonly rules: RoomRules;
  readonly #root: string;
  #count: Count | undefined;
  /** Written by tools since the last count. */
  #added = 0;
  /** Commands have run since the last count. */
  #touched = false;
  #counting: Promise<Count> | undefined;

  constructor(root: string, rules: RoomRules) {
    this.#root = root;
    this.rules = rules;
  }

  /** For people; null before the first count. */
  get usedBytes(): number | null {
    return this.#count === undefined ? null : this.#count.bytes + this.#added;
  }

  /** A tool is about to write `bytes`, in the place of `replacedBytes`. Throws WorkspaceError where there is no room for it. */
  async admit(bytes: number, replacedBytes = 0): Promise<void> {
    const { maxBytes, minFreeBytes } = this.rules;
    if (bytes === 0) return;
    const { freeBytes, takenBytes } = minFreeBytes + maxBytes > 0 ? await this.#disk() : anyDisk;
    if (freeBytes - bytes < minFreeBytes) throw new WorkspaceError("no_room", diskFull(freeBytes, minFreeBytes));
    const growth = bytes - replacedBytes;
    if (maxBytes === 0 || growth <= 0) return;
    let count = this.#count ?? (await this.#countNow());
    const gained = this.#isOld(count) ? Math.max(this.#added, takenBytes - count.takenBytes) : this.#added;
    if (count.bytes + gained + growth > maxBytes && this.#isOld(count)) count = await this.#countNow();
    const used = count.bytes + this.#added;
    if (used + growth > maxBytes) throw new WorkspaceError("no_room", workspaceFull(used, maxBytes));
    this.#added += growth;
  }

  /** To be asked again and again while a command runs: what it is to be stopped for. `end` when it has ended. */
  watch(): { look: () => Promise<Overfull | undefined>; end: () => void } {
    const { maxBytes, minFreeBytes } = this.rules;
    if (maxBytes + minFreeBytes === 0) return { look: async () => undefined, end: () => undefined };
    const begun = this.#begin();
    begun.catch(() => undefined);
    this.#touched = true;
    const look = async (): Promise<Overfull | undefined> => {
      const { free, allowed } = await begun;
      const disk = await this.#disk();
      if (disk.freeBytes < minFreeBytes && free - disk.freeBytes > slackBytes) return "disk_full";
      if (maxBytes === 0) return undefined;
      const count = this.#count;
      if (count !== undefined && !this.#isDue(count, disk, allowed)) return undefined;
      return (await this.#countNow()).bytes > allowed ? "workspace_full" : undefined;
    };
    return { look, end: () => (this.#touched = true) };
  }

  /** What was free before a command, and what the workspace may hold while it runs. */
  async #begin(): Promise<{ free: number; allowed: number }> {
    const { maxBytes } = this.rules;
    const { freeBytes: free } = await this.#disk();
    if (maxBytes === 0) return { free, allowed: 0 };
    let count = this.#count ?? (await this.#countNow());
    if (count.bytes + this.#added > maxBytes) count = await this.#countNow();
    return { free, allowed: Math.max(maxBytes, count.bytes + slackBytes) };
  }

  #isDue(count: Count, { takenBytes }: Disk, allowed: number): boolean {
    const sinceMs = age(count);
    if (sinceMs < count.tookMs * restFactor) return false;
    return sinceMs > recountMs || count.bytes + Math.max(this.#added, takenBytes - count.takenBytes) > allowed;
  }

  #isOld(count: Count): boolean {
    return this.#touched || age(count) > freshMs;
  }

  /** A count that begins now: one that is under way may have passed what has changed meanwhile. */
  async #countNow(): Promise<Count> {
    await this.#counting?.catch(() => undefined);
    this.#counting ??= this.#take().finally(() => (this.#counting = undefined));
    return this.#counting;
  }

  async #take(): Promise<Count> {
    const added = this.#added;
    this.#touched = false;
    const from = performance.now();
    const { takenBytes } = await this.#disk();
    const bytes = await bytesBelow(this.#root);
    const at = performance.now();
    this.#count = { bytes, takenBytes, at, tookMs: at - from };
    this.#added -= added;
    return this.#count;
  }

  async #disk(): Promise<Disk> {
    const { bsize, bavail, blocks, bfree, files, ffree } = await statfs(this.#root);
    return { freeBytes: bavail * bsize, takenBytes: (blocks - bfree) * bsize + (files - ffree) * leastBytes };
  }
}

const anyDisk: Disk = { freeBytes: Number.POSITIVE_INFINITY, takenBytes: 0 };

function age(count: Count): number {
  return performance.now() - count.at;
}

function workspaceFull(usedBytes: number, maxBytes: number): string {
  return `The workspace is full: it holds ${sizeText(usedBytes)} of ${sizeText(maxBytes)}. Nothing was written. ${wayOut} [workspace] max_bytes.`;
}

function diskFull(freeBytes: number, minFreeBytes: number): string {
  return `The disk of the workspace has ${sizeText(freeBytes)} left, and ${sizeText(minFreeBytes)} stay free. Nothing was written. ${wayOut} disk.`;
}

const wayOut = "Delete what is not needed (exec: du -ah . | sort -h | tail), or ask the operator for a larger";
