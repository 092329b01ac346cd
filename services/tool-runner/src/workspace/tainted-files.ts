// Which files of a workspace were written by tainted calls. One record a path in the state folder, where no command reaches it and all
// replicas of the workspace read it. It does not know which calls are tainted, nor what their results show.
import { createHash, randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { errnoOf } from "./errors.ts";
import { filesBelow } from "./files-below.ts";

/** Ends the name of a record that was ended: a rewind may bring back what the file contained then. */
const ended = ".ended";
/** Ends the name of a record that is being written. */
const unfinished = ".tmp";
/** Clocks of file systems are behind the clock of the machine by a few milliseconds. */
const clockSlackMs = 100;
const recordAtOnce = 32;

export interface TaintedCommand {
  /** Records what the command changed. Called once the command and all that it left running has ended. */
  end(): Promise<void>;
}

export class TaintedFiles {
  readonly #root: string;
  readonly #records: string;
  readonly #commands: string;
  readonly #runner: string;
  /** Paths by the names of their records, which never change their content. */
  readonly #paths = new Map<string, string>();

  /** `runner`: the name of this replica, the same in each of its lives. */
  constructor(stateFolder: string, root: string, runner: string) {
    // The same for all replicas that have workspace and state folder in the same places to each other.
    const folder = join(stateFolder, "taint", nameOf(relative(stateFolder, root)).slice(0, 32));
    this.#root = root;
    this.#records = join(folder, "files");
    this.#commands = join(folder, "commands");
    this.#runner = nameOf(runner).slice(0, 32);
  }

  /** Ends what commands of a previous instance of this replica left open: they died with it. */
  async recover(): Promise<void> {
    for (const { name, since } of await this.#open()) {
      if (name.startsWith(`${this.#runner}-`)) await this.#close(name, since, new Set());
    }
  }

  /** Whether a file, or what it stands for below a symbolic link, was written by a tainted call. `stats`: as it is now. */
  async has(path: string, stats: Pick<Stats, "ctimeMs"> | null): Promise<boolean> {
    if (await this.#isRecorded(path)) return true;
    if (stats === null) return false;
    return (await this.#open()).some(({ since }) => stats.ctimeMs >= since);
  }

  /** Whether a tainted file is directly in this directory. */
  async inDirectory(path: string): Promise<boolean> {
    return (await this.#all()).some((each) => dirname(each) === path);
  }

  /** Whether a tainted file exists, or a tainted command runs. Records of files that are gone end. */
  async any(): Promise<boolean> {
    if ((await this.#open()).length > 0) return true;
    let found = false;
    for (const path of await this.#all()) {
      if ((await statsAt(join(this.#root, path))) === null) await this.clear(path);
      else found = true;
    }
    return found;
  }

  /** False: it was recorded already. */
  async mark(path: string): Promise<boolean> {
    if (await this.#isRecorded(path)) return false;
    await mkdir(this.#records, { recursive: true, mode: 0o700 });
    const temporary = join(this.#records, `${randomUUID()}${unfinished}`);
    await writeFile(temporary, path, { mode: 0o600 });
    await rename(temporary, join(this.#records, nameOf(path)));
    return true;
  }

  /** An untainted call has written the whole file, or is gone. */
  async clear(path: string): Promise<void> {
    const record = join(this.#records, nameOf(path));
    await rename(record, `${record}${ended}`).catch(ignoreMissing);
  }

  /** An earlier content of the file was brought back: whether that was tainted is not known, where any was. */
  async restored(path: string): Promise<void> {
    const record = join(this.#records, nameOf(path));
    await rename(`${record}${ended}`, record).catch(ignoreMissing);
  }

  /** A command begins in a tainted call, or where it can read tainted files: what changes from now on is tainted. */
  async begin(): Promise<TaintedCommand> {
    const since = Date.now() - clockSlackMs;
    const inodes = new Set<number>();
    for (const path of await this.#all()) {
      const stats = await statsAt(join(this.#root, path));
      if (stats !== null) inodes.add(stats.ino);
    }
    const name = `${this.#runner}-${randomUUID()}`;
    await mkdir(this.#commands, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#commands, `${name}${unfinished}`), String(since), { mode: 0o600 });
    await rename(join(this.#commands, `${name}${unfinished}`), join(this.#commands, name));
    return { end: () => this.#close(name, since, inodes) };
  }

  /** `inodes`: of files that were tainted before, which may have been moved. */
  async #close(name: string, since: number, inodes: ReadonlySet<number>): Promise<void> {
    const changed: string[] = [];
    for await (const { path, stats } of filesBelow(this.#root)) {
      if (stats.ctimeMs >= since || inodes.has(stats.ino)) changed.push(path);
    }
    for (let at = 0; at < changed.length; at += recordAtOnce) {
      await Promise.all(changed.slice(at, at + recordAtOnce).map((path) => this.mark(path)));
    }
    await rm(join(this.#commands, name), { force: true });
  }

  /** Commands that run, or whose replica died, and since when, in milliseconds since 1970. */
  async #open(): Promise<{ name: string; since: number }[]> {
    const names = (await readdir(this.#commands).catch(none)).filter((name) => !name.endsWith(unfinished));
    const found = names.map(async (name) => {
      const text = await readFile(join(this.#commands, name), "utf8").catch(ignoreMissing);
      return text === undefined ? [] : [{ name, since: Number(text) }];
    });
    return (await Promise.all(found)).flat();
  }

  async #isRecorded(path: string): Promise<boolean> {
    return (await statsAt(join(this.#records, nameOf(path)))) !== null;
  }

  async #names(): Promise<Set<string>> {
    const names = await readdir(this.#records).catch(none);
    return new Set(names.filter((name) => !name.endsWith(ended) && !name.endsWith(unfinished)));
  }

  async #all(): Promise<string[]> {
    const names = await this.#names();
    for (const known of this.#paths.keys()) if (!names.has(known)) this.#paths.delete(known);
    for (const name of names) {
      if (this.#paths.has(name)) continue;
      const path = await readFile(join(this.#records, name), "utf8").catch(ignoreMissing);
      if (path !== undefined) this.#paths.set(name, path);
    }
    return [...this.#paths.values()];
  }
}

function nameOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function statsAt(path: string): Promise<Stats | null> {
  return (await lstat(path).catch(ignoreMissing)) ?? null;
}

function none(error: unknown): string[] {
  ignoreMissing(error);
  return [];
}

/** Throws what is not the answer that nothing is there. */
function ignoreMissing(error: unknown): undefined {
  const code = errnoOf(error);
  if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
}
