// Enforces the quota of the workspace and the free space of its disk. While commands run, the free space is read every half second;
// the workspace is counted again when the disk has changed. It does not know which command writes: the newest is stopped first.
import { statfs } from "node:fs/promises";
import { sizeText } from "@parley/contracts";
import { WorkspaceError } from "./errors.ts";
import { diskUsage, leastBytes } from "./disk-usage.ts";

export interface QuotaRules {
  /** Maximum size of the workspace; 0 = no limit. */
  maxBytes: number;
  /** Space that must stay free on its disk; 0 = none. */
  minFreeBytes: number;
}

export const unlimitedQuota: QuotaRules = { maxBytes: 0, minFreeBytes: 0 };

/** Why a running command is stopped. */
type Overfull = "workspace_full" | "disk_full";
type Stop = (reason: Overfull) => void;

/** Every second check only measures what was left after a stop, so at most one command is stopped per second. */
const pollMs = 500;
/** Commands above a limit may together write this much: deleting files writes a little, too. */
const slackBytes = 1024 * 1024;
/** Counting takes at most a fifth of the time. */
const restFactor = 4;
/** An older count is repeated even if the disk seems unchanged: some file systems report their free space late or never. */
const staleMs = 10_000;

interface Disk {
  freeBytes: number;
  /** Grows with written bytes and with the number of files, of any writer. */
  takenBytes: number;
}

interface Count {
  bytes: number;
  /** Of the disk, before the count. */
  takenBytes: number;
  at: number;
  tookMs: number;
}

/** Decides whether a level above its limit still grows. The first level, and the first after growth, is only measured. */
export class Gauge {
  readonly #limit: number;
  #allowed = Number.POSITIVE_INFINITY;

  constructor(limit: number) {
    this.#limit = limit;
  }

  grows(level: number): boolean {
    const grown = level > this.#allowed;
    const allowed = Math.max(this.#limit, level + slackBytes);
    this.#allowed = grown ? Number.POSITIVE_INFINITY : Math.min(this.#allowed, allowed);
    return grown;
  }
}

export class WorkspaceQuota {
  readonly rules: QuotaRules;
  readonly #root: string;
  #count: Count | undefined;
  /** Written by tools since the last count. */
  #added = 0;
  #counting: Promise<Count> | undefined;
  /** Stops a running command; the oldest first. */
  readonly #commands = new Set<Stop>();
  #timer: NodeJS.Timeout | undefined;
  /** Running check, or undefined. */
  #checking: Promise<void> | undefined;
  #workspaceGauge: Gauge;
  #diskGauge: Gauge;

  constructor(root: string, rules: QuotaRules) {
    this.#root = root;
    this.rules = rules;
    this.#workspaceGauge = new Gauge(rules.maxBytes);
    this.#diskGauge = new Gauge(-rules.minFreeBytes);
  }

  /** For reports; null before the first count. */
  get usedBytes(): number | null {
    return this.#count === undefined ? null : this.#count.bytes + this.#added;
  }

  /** Reserves space before a tool writes `bytes` in place of `replacedBytes`. Throws WorkspaceError when the quota or the disk does not allow it. */
  async reserve(bytes: number, replacedBytes = 0): Promise<void> {
    const { maxBytes, minFreeBytes } = this.rules;
    if (bytes === 0 || maxBytes + minFreeBytes === 0) return;
    const disk = await this.#disk();
    if (disk.freeBytes - bytes < minFreeBytes)
      throw new WorkspaceError("no_room", diskFull(disk.freeBytes, minFreeBytes));
    const growth = bytes - replacedBytes;
    if (maxBytes === 0 || growth <= 0) return;
    let count = this.#count;
    // No write is refused because of an old count.
    if (count === undefined || this.#isDue(count, disk) || this.#estimate(count, disk) + growth > maxBytes)
      count = await this.#countNow();
    const used = count.bytes + this.#added;
    if (used + growth > maxBytes) throw new WorkspaceError("no_room", workspaceFull(used, maxBytes));
    this.#added += growth;
  }

  /**
   * Watches a command until the returned function is called; await it before the command starts. `stop` is called at most once, when
   * a limit is exceeded, usage still grows, and every newer command has been stopped or has ended. A failed check stops no command.
   */
  async watch(stop: Stop): Promise<() => void> {
    const { maxBytes, minFreeBytes } = this.rules;
    if (maxBytes + minFreeBytes === 0) return () => undefined;
    if (this.#commands.size === 0) await this.#measure().catch(() => undefined);
    this.#commands.add(stop);
    this.#timer ??= setInterval(() => {
      if (this.#checking === undefined) this.#startCheck(this.#newest());
    }, pollMs).unref();
    return () => {
      const isNewest = this.#newest() === stop;
      this.#commands.delete(stop);
      if (this.#commands.size === 0) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      } else if (isNewest) this.#startCheck(stop);
    };
  }

  #newest(): Stop | undefined {
    return [...this.#commands].at(-1);
  }

  /** Starts a check after the running one. `newest`: the command that is stopped for growth until now; when it has ended, none is. */
  #startCheck(newest: Stop | undefined): void {
    const previous = this.#checking;
    const run = async () => {
      await previous;
      // The next check tries again.
      await this.#check(newest).catch(() => undefined);
      if (this.#checking === check) this.#checking = undefined;
    };
    const check = run();
    this.#checking = check;
  }

  /** Levels before a command: what it finds above a limit is not its own. */
  async #measure(): Promise<void> {
    const { maxBytes, minFreeBytes } = this.rules;
    this.#workspaceGauge = new Gauge(maxBytes);
    this.#diskGauge = new Gauge(-minFreeBytes);
    const disk = await this.#disk();
    this.#diskGauge.grows(-disk.freeBytes);
    if (maxBytes === 0) return;
    const count = this.#count;
    const isFull = count === undefined || this.#estimate(count, disk) > maxBytes;
    this.#workspaceGauge.grows(isFull ? (await this.#countNow()).bytes : count.bytes);
  }

  async #check(newest: Stop | undefined): Promise<void> {
    const stopNewest = (reason: Overfull) => {
      if (newest !== undefined && this.#commands.delete(newest)) newest(reason);
    };
    const disk = await this.#disk();
    if (this.#diskGauge.grows(-disk.freeBytes)) stopNewest("disk_full");
    const count = this.#count;
    if (this.rules.maxBytes === 0) return;
    const hasEnded = newest !== undefined && !this.#commands.has(newest);
    if (count !== undefined && !this.#isDue(count, disk) && !(hasEnded && this.#hasOutgrown(count, disk))) return;
    const { bytes } = await this.#countNow();
    if (this.#workspaceGauge.grows(bytes)) stopNewest("workspace_full");
  }

  /** Whether the workspace may have grown above its limit since the count. */
  #hasOutgrown(count: Count, disk: Disk): boolean {
    return disk.takenBytes !== count.takenBytes && this.#estimate(count, disk) > this.rules.maxBytes;
  }

  /** Whether the disk has changed since the count, and a new count keeps to its share of the time. */
  #isDue(count: Count, { takenBytes }: Disk): boolean {
    const ageMs = performance.now() - count.at;
    return ageMs >= count.tookMs * restFactor && (takenBytes !== count.takenBytes || ageMs > staleMs);
  }

  /** At least the size of the workspace, unless others have deleted files on its disk since the count. */
  #estimate(count: Count, { takenBytes }: Disk): number {
    return count.bytes + Math.max(this.#added, takenBytes - count.takenBytes);
  }

  /** Starts a new count: a running one may already have passed files that changed meanwhile. */
  async #countNow(): Promise<Count> {
    await this.#counting?.catch(() => undefined);
    this.#counting ??= this.#take().finally(() => (this.#counting = undefined));
    return this.#counting;
  }

  async #take(): Promise<Count> {
    const added = this.#added;
    const from = performance.now();
    const { takenBytes } = await this.#disk();
    const bytes = await diskUsage(this.#root);
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

function workspaceFull(usedBytes: number, maxBytes: number): string {
  return `The workspace is full: it uses ${sizeText(usedBytes)} of ${sizeText(maxBytes)}. Nothing was written. ${freeSpaceAdvice} [workspace] max_bytes.`;
}

function diskFull(freeBytes: number, minFreeBytes: number): string {
  return `The disk of the workspace has ${sizeText(freeBytes)} left, and ${sizeText(minFreeBytes)} must stay free. Nothing was written. ${freeSpaceAdvice} disk.`;
}

const freeSpaceAdvice =
  "Delete files that are no longer needed (list the largest with exec: du -ah . | sort -h | tail), or ask the operator for a larger";
