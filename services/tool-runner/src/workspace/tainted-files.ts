// Records which workspace files were written by tainted calls: one record per path in the state folder, out of reach of commands and
// shared by all replicas of the workspace. It does not know which calls are tainted or what their results show.
import { createHash, randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { errnoOf } from "./errors.ts";
import { joinBytes, withinReach } from "./byte-paths.ts";
import { entriesBelow } from "./entries-below.ts";

/** Suffix of an ended record: a rewind may restore the tainted content. */
const ended = ".ended";
/** Suffix of a record that is being written. */
const unfinished = ".tmp";
/** File system timestamps lag the system clock by a few milliseconds. */
const clockSlackMs = 100;
const recordAtOnce = 32;

export interface TaintedCommand {
  /**
   * Records what the command changed. Call it after the command and all its processes have ended. While a part of the workspace cannot
   * be read or a record cannot be written, the command counts as running: a later end tries again.
   */
  end(): Promise<void>;
}

interface OpenCommand {
  /** Name of its record. */
  name: string;
  /** In milliseconds since 1970. */
  since: number;
  /** Inodes of files that were already tainted, which may have been moved. */
  inodes: ReadonlySet<number>;
}

export class TaintedFiles {
  readonly #root: string;
  readonly #records: string;
  readonly #commands: string;
  readonly #runner: string;
  /** Paths by record name; the content of a record never changes. */
  readonly #paths = new Map<string, Buffer>();
  /** The oldest of the ended commands whose changes could not all be recorded: it covers the later ones. */
  readonly #unrecorded: OpenCommand[] = [];

  /** `runner`: the name of this replica, the same for all its process instances. */
  constructor(stateFolder: string, root: string, runner: string) {
    // The same for all replicas with the same relative location of workspace and state folder.
    const folder = join(stateFolder, "taint", nameOf(relative(stateFolder, root)).slice(0, 32));
    this.#root = root;
    this.#records = join(folder, "files");
    this.#commands = join(folder, "commands");
    this.#runner = nameOf(runner).slice(0, 32);
  }

  /** Closes records of commands that a previous instance of this replica left open: they died with it. */
  async recover(): Promise<void> {
    const own = (await this.#open()).filter(({ name }) => name.startsWith(`${this.#runner}-`));
    if (own.length > 0) await this.#close(own.map((each) => ({ ...each, inodes: new Set() })));
  }

  /** Whether a file was written by a tainted call. `stats`: its current stats. */
  async has(path: string, stats: Pick<Stats, "ctimeMs"> | null): Promise<boolean> {
    if (await this.#isRecorded(path)) return true;
    if (stats === null) return false;
    return (await this.#open()).some(({ since }) => stats.ctimeMs >= since);
  }

  /** Whether a tainted file is directly in this directory. */
  async inDirectory(path: string): Promise<boolean> {
    return (await this.#all()).some((each) => dirname(each.toString()) === path);
  }

  /** Whether a tainted file exists or a tainted command runs. Ends records of files that no longer exist. */
  async any(): Promise<boolean> {
    if ((await this.#open()).length > 0) return true;
    let found = false;
    for (const path of await this.#all()) {
      // A file that cannot be examined may exist.
      if (await this.#statsOf(path).then(() => false, isMissing)) await this.clear(path);
      else found = true;
    }
    return found;
  }

  /** Records a file as tainted; false when it already was. */
  async mark(path: string | Buffer): Promise<boolean> {
    if (await this.#isRecorded(path)) return false;
    await mkdir(this.#records, { recursive: true, mode: 0o700 });
    const temporary = join(this.#records, `${randomUUID()}${unfinished}`);
    await writeFile(temporary, path, { mode: 0o600 });
    await rename(temporary, join(this.#records, nameOf(path)));
    return true;
  }

  /** Ends a record: an untainted call has written the whole file, or the file is gone. */
  async clear(path: string | Buffer): Promise<void> {
    const record = join(this.#records, nameOf(path));
    await rename(record, `${record}${ended}`).catch(ignoreMissing);
  }

  /** Reactivates an ended record when a rewind restores the file: the restored content may be the tainted one. */
  async restored(path: string): Promise<void> {
    const record = join(this.#records, nameOf(path));
    await rename(`${record}${ended}`, record).catch(ignoreMissing);
  }

  /** Starts a command of a tainted call, or one that can read tainted files: all files changed from now on are tainted. */
  async begin(): Promise<TaintedCommand> {
    const since = Date.now() - clockSlackMs;
    const inodes = new Set<number>();
    for (const path of await this.#all()) {
      const stats = await this.#statsOf(path).catch(() => null);
      if (stats !== null) inodes.add(stats.ino);
    }
    const name = `${this.#runner}-${randomUUID()}`;
    await mkdir(this.#commands, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#commands, `${name}${unfinished}`), String(since), { mode: 0o600 });
    await rename(join(this.#commands, `${name}${unfinished}`), join(this.#commands, name));
    return { end: () => this.#close([{ name, since, inodes }]) };
  }

  async #close(commands: OpenCommand[]): Promise<void> {
    let closed = [...commands, ...this.#unrecorded.splice(0)];
    if (!(await this.#recordChanges(closed))) {
      this.#unrecorded.push(...closed);
      closed = this.#unrecorded.sort((a, b) => a.since - b.since).splice(1);
    }
    for (const { name } of closed) await rm(join(this.#commands, name), { force: true });
  }

  /** False when they may have changed files that could not be recorded. */
  async #recordChanges(commands: OpenCommand[]): Promise<boolean> {
    const since = Math.min(...commands.map((each) => each.since));
    const inodes = new Set(commands.flatMap((each) => [...each.inodes]));
    let complete = true;
    const onError = (error: unknown, changedMs: number): undefined => {
      // A directory that has long been unreadable was unreadable to the command, too.
      if (!isMissing(error) && (errnoOf(error) !== "EACCES" || changedMs >= since)) complete = false;
    };
    const changed: Buffer[] = [];
    for await (const { path, stats } of entriesBelow(this.#root, onError)) {
      if (!stats.isDirectory() && (stats.ctimeMs >= since || inodes.has(stats.ino))) changed.push(path);
    }
    try {
      for (let at = 0; at < changed.length; at += recordAtOnce) {
        await Promise.all(changed.slice(at, at + recordAtOnce).map((path) => this.mark(path)));
      }
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      return false;
    }
    return complete;
  }

  /** Open commands (running, or of a dead replica) with their start in milliseconds since 1970. */
  async #open(): Promise<{ name: string; since: number }[]> {
    const names = (await readdir(this.#commands).catch(none)).filter((name) => !name.endsWith(unfinished));
    const found = names.map(async (name) => {
      const text = await readFile(join(this.#commands, name), "utf8").catch(ignoreMissing);
      return text === undefined ? [] : [{ name, since: Number(text) }];
    });
    return (await Promise.all(found)).flat();
  }

  async #isRecorded(path: string | Buffer): Promise<boolean> {
    return (await lstat(join(this.#records, nameOf(path))).catch(ignoreMissing)) !== undefined;
  }

  #statsOf(path: Buffer): Promise<Stats> {
    return withinReach(joinBytes(Buffer.from(this.#root), path), (short) => lstat(short));
  }

  async #names(): Promise<Set<string>> {
    const names = await readdir(this.#records).catch(none);
    return new Set(names.filter((name) => !name.endsWith(ended) && !name.endsWith(unfinished)));
  }

  async #all(): Promise<Buffer[]> {
    const names = await this.#names();
    for (const known of this.#paths.keys()) if (!names.has(known)) this.#paths.delete(known);
    for (const name of names) {
      if (this.#paths.has(name)) continue;
      const path = await readFile(join(this.#records, name)).catch(ignoreMissing);
      if (path !== undefined) this.#paths.set(name, path);
    }
    return [...this.#paths.values()];
  }
}

function nameOf(text: string | Buffer): string {
  return createHash("sha256").update(text).digest("hex");
}

function none(error: unknown): string[] {
  ignoreMissing(error);
  return [];
}

/** Throws errors other than a missing file. */
function ignoreMissing(error: unknown): undefined {
  if (!isMissing(error)) throw error;
}

function isMissing(error: unknown): boolean {
  const code = errnoOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}
