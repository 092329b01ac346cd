// Enforces the quota of the workspace and the free space of its disk. Counting a large tree is slow, so it is done rarely, and
// earlier when the whole disk has gained much since the last count, which takes one call to find out.
import { statfs } from "node:fs/promises";
import { sizeText } from "@parley/contracts";
import { writesOf } from "./process-tree.ts";
import { WorkspaceError } from "./errors.ts";
import { diskUsage, leastBytes } from "./disk-usage.ts";
import { Books, Writers, type Look, type Writes } from "./writers.ts";

export interface QuotaRules {
  /** Maximum size of the workspace; 0 = no limit. */
  maxBytes: number;
  /** Space that must stay free on its disk; 0 = none. */
  minFreeBytes: number;
}

export const unlimitedQuota: QuotaRules = { maxBytes: 0, minFreeBytes: 0 };

/** Why a running command is stopped. */
type Overfull = "workspace_full" | "disk_full";

/** A command that started above a limit may still write this much: deleting files writes a little, too. */
const slackBytes = 1024 * 1024;
/** Counting takes at most a tenth of the time. */
const restFactor = 9;
/** Interval between counts while a command runs, as long as counting takes at most a tenth of the time: deletions by others hide growth of the disk. */
const recountMs = 1_000;
/** Minimum interval between checks of which commands fill the disk. */
const diskJudgeMs = 200;
/** An older count is repeated before a write is refused. */
const freshMs = 30_000;

interface Disk {
  freeBytes: number;
  /** Grows with written bytes and with the number of files, of any writer. */
  takenBytes: number;
}

/** Disk watch of one command. */
interface Watch {
  /** Reports the pid of its first process, which identifies what it writes. */
  began: (pid: number | undefined) => void;
  /** Polled while it runs: resolves with the reason to stop it. */
  look: () => Promise<Overfull | undefined>;
  /** Ends the watch. */
  end: () => void;
}

/** Free space before a command, and the allowed size of the workspace while it runs. */
interface Begun {
  free: number;
  allowed: number;
}

interface Watched {
  pid: number | undefined;
  /** Undefined until it is known. */
  begun: Begun | undefined;
  stop: Overfull | undefined;
}

interface Count {
  bytes: number;
  takenBytes: number;
  at: number;
  tookMs: number;
}

export class WorkspaceQuota {
  readonly rules: QuotaRules;
  readonly #root: string;
  #count: Count | undefined;
  /** Written by tools since the last count. */
  #added = 0;
  /** Whether commands have run since the last count. */
  #touched = false;
  #counting: Promise<Count> | undefined;
  readonly #watched = new Set<Watched>();
  /** Writers that fill the workspace, and writers that fill its disk. */
  readonly #writers = { workspace: new Writers(), disk: new Writers() };
  readonly #books = new Books();
  #diskJudgedAt = Number.NEGATIVE_INFINITY;

  constructor(root: string, rules: QuotaRules) {
    this.#root = root;
    this.rules = rules;
  }

  /** For reports; null before the first count. */
  get usedBytes(): number | null {
    return this.#count === undefined ? null : this.#count.bytes + this.#added;
  }

  /** Reserves space before a tool writes `bytes` in place of `replacedBytes`. Throws WorkspaceError when the quota or the disk does not allow it. */
  async admit(bytes: number, replacedBytes = 0): Promise<void> {
    const { maxBytes, minFreeBytes } = this.rules;
    if (bytes === 0) return;
    const { freeBytes, takenBytes } = minFreeBytes + maxBytes > 0 ? await this.#disk() : anyDisk;
    if (freeBytes - bytes < minFreeBytes) throw new WorkspaceError("no_room", diskFull(freeBytes, minFreeBytes));
    const growth = bytes - replacedBytes;
    if (maxBytes === 0 || growth <= 0) return;
    let count = this.#count ?? (await this.#countNow());
    if (this.#isOld(count)) {
      const gained = Math.max(this.#added, takenBytes - count.takenBytes);
      // Deletions by others hide growth of the disk, so the estimate is trusted only while a new count would be too expensive.
      if (count.bytes + gained + growth > maxBytes || hasRested(count)) count = await this.#countNow();
    }
    const used = count.bytes + this.#added;
    if (used + growth > maxBytes) throw new WorkspaceError("no_room", workspaceFull(used, maxBytes));
    this.#added += growth;
  }

  /** Starts the watch of a command; call it before the command starts. */
  watch(): Watch {
    const { maxBytes, minFreeBytes } = this.rules;
    const nothing = () => undefined;
    if (maxBytes + minFreeBytes === 0) return { began: nothing, look: async () => undefined, end: nothing };
    const begun = this.#begin();
    begun.catch(() => undefined);
    this.#touched = true;
    const watched: Watched = { pid: undefined, begun: undefined, stop: undefined };
    this.#watched.add(watched);
    const look = async (): Promise<Overfull | undefined> => {
      watched.begun ??= await begun;
      const disk = await this.#disk();
      if (disk.freeBytes < minFreeBytes) this.#judgeDisk(disk);
      const count = this.#count;
      const isDue = maxBytes > 0 && (count === undefined || this.#isDue(count, disk, watched.begun.allowed));
      if (isDue && watched.stop === undefined) await this.#countNow();
      // Sample again before it is killed, or much of what it wrote would be attributed to no command.
      if (watched.stop !== undefined) this.#writes();
      return watched.stop;
    };
    const end = () => {
      this.#touched = true;
      this.#watched.delete(watched);
    };
    return { began: (pid) => (watched.pid = pid), look, end };
  }

  #judgeDisk({ freeBytes }: Disk): void {
    if (performance.now() - this.#diskJudgedAt < diskJudgeMs) return;
    this.#diskJudgedAt = performance.now();
    const to = this.#writes();
    const writers = this.#writers.disk.since({ bytes: -freeBytes, from: to, to });
    this.#stop("disk_full", writers, ({ free }) => free - freeBytes > slackBytes);
  }

  /** Stops the affected commands; only the writers among them when these are known. */
  #stop(why: Overfull, writers: ReadonlySet<number> | undefined, isAbout: (begun: Begun) => boolean): void {
    for (const each of this.#watched) {
      const mayWrite = writers === undefined || each.pid === undefined || writers.has(each.pid);
      if (mayWrite && each.begun !== undefined && isAbout(each.begun)) each.stop ??= why;
    }
  }

  #writes(): Writes | undefined {
    return this.#books.enter(writesOf([...this.#watched].flatMap(({ pid }) => pid ?? [])));
  }

  async #begin(): Promise<Begun> {
    const { maxBytes } = this.rules;
    const { freeBytes: free } = await this.#disk();
    if (maxBytes === 0) return { free, allowed: 0 };
    let count = this.#count ?? (await this.#countNow());
    if (count.bytes + this.#added > maxBytes) count = await this.#countNow();
    return { free, allowed: Math.max(maxBytes, count.bytes + slackBytes) };
  }

  #isDue(count: Count, { takenBytes }: Disk, allowed: number): boolean {
    if (!hasRested(count)) return false;
    return age(count) > recountMs || count.bytes + Math.max(this.#added, takenBytes - count.takenBytes) > allowed;
  }

  #isOld(count: Count): boolean {
    return this.#touched || age(count) > freshMs;
  }

  /** Starts a new count: a running one may already have passed files that changed meanwhile. */
  async #countNow(): Promise<Count> {
    await this.#counting?.catch(() => undefined);
    this.#counting ??= this.#take().finally(() => (this.#counting = undefined));
    return this.#counting;
  }

  async #take(): Promise<Count> {
    const added = this.#added;
    this.#touched = false;
    const from = performance.now();
    const before = this.#writes();
    const { takenBytes, freeBytes } = await this.#disk();
    const bytes = await diskUsage(this.#root);
    const at = performance.now();
    this.#count = { bytes, takenBytes, at, tookMs: at - from };
    this.#added -= added;
    this.#judge({ bytes, from: before, to: this.#writes() }, freeBytes);
    return this.#count;
  }

  /** `freeBytes`: free space when the count started. */
  #judge(look: Look, freeBytes: number): void {
    const { maxBytes, minFreeBytes } = this.rules;
    if (freeBytes >= minFreeBytes) this.#writers.disk.calm({ ...look, bytes: -freeBytes });
    if (maxBytes === 0 || look.bytes <= maxBytes) this.#writers.workspace.calm(look);
    else this.#stop("workspace_full", this.#writers.workspace.since(look), ({ allowed }) => look.bytes > allowed);
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

/** Whether a new count now would keep to its share of the time. */
function hasRested(count: Count): boolean {
  return age(count) >= count.tookMs * restFactor;
}

function workspaceFull(usedBytes: number, maxBytes: number): string {
  return `The workspace is full: it uses ${sizeText(usedBytes)} of ${sizeText(maxBytes)}. Nothing was written. ${wayOut} [workspace] max_bytes.`;
}

function diskFull(freeBytes: number, minFreeBytes: number): string {
  return `The disk of the workspace has ${sizeText(freeBytes)} left, and ${sizeText(minFreeBytes)} must stay free. Nothing was written. ${wayOut} disk.`;
}

const wayOut =
  "Delete files that are no longer needed (list the largest with exec: du -ah . | sort -h | tail), or ask the operator for a larger";
