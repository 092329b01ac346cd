// Walks a path part by part from an open directory: each part is opened below the descriptor of its parent and never through a
// symbolic link. Links are read and walked the same way, and `..` returns to the parent's descriptor.
import { constants, type Stats } from "node:fs";
import { mkdir, open, readlink } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, WorkspaceError } from "./errors.ts";
import { outside, displayPath, splitPath } from "./paths.ts";
import {
  changed,
  inDirectory,
  kindOf,
  notFound,
  openedDirectory,
  statsOf,
  type Directory,
  type ResolvedPath,
} from "./places.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
const maxLinks = 40;
/** How often a part may change between lstat and open before the walk fails. */
const maxRaces = 16;

/** One path walk: its open directories, their names, and its budgets for links and races. */
export class PathWalk {
  readonly #path: string;
  readonly #root: string;
  readonly #createParents: boolean;
  readonly #open: Directory[];
  readonly #names: string[] = [];
  #links = 0;
  #races = 0;

  constructor(path: string, root: string, directory: Directory, createParents: boolean) {
    this.#path = path;
    this.#root = root;
    this.#open = [directory];
    this.#createParents = createParents;
  }

  async toEnd(parts: string[]): Promise<ResolvedPath> {
    const ahead = parts.toReversed();
    for (;;) {
      const name = ahead.pop();
      if (name === undefined) return this.#here();
      if (name === "..") {
        await this.#back();
        continue;
      }
      const stats = await statsOf(this.#top, name);
      if (stats === null) {
        if (ahead.length === 0) return this.#place(name, null);
        if (!this.#createParents || ahead.includes("..")) throw notFound([...this.#names, name].join("/"));
        await makeDirectory(this.#top, name);
        ahead.push(name);
        this.#race();
      } else if (stats.isSymbolicLink()) {
        ahead.push(...(await this.#linkTarget(name)));
      } else if (ahead.length === 0) {
        return this.#place(name, stats);
      } else if (stats.isDirectory()) {
        if (!(await this.#enter(name))) ahead.push(name);
      } else {
        throw new WorkspaceError(
          "not_a_directory",
          `"${displayPath([...this.#names, name].join("/"))}" is ${kindOf(stats)}, not a directory.`,
        );
      }
    }
  }

  /** Closes all directories of the walk except the root. */
  async release(): Promise<void> {
    await Promise.all(this.#open.splice(1).map((directory) => directory[Symbol.asyncDispose]()));
  }

  get #top(): Directory {
    const top = this.#open.at(-1);
    if (top === undefined) throw outside(this.#path);
    return top;
  }

  #place(name: string, stats: Stats | null): ResolvedPath {
    return {
      directory: this.#top,
      name,
      relative: [...this.#names, name].join("/"),
      stats,
      [Symbol.asyncDispose]: () => this.release(),
    };
  }

  /** The place of the current directory of the walk. */
  async #here(): Promise<ResolvedPath> {
    const stats = await this.#top.handle.stat();
    const relative = this.#names.length === 0 ? "." : this.#names.join("/");
    return { directory: this.#top, name: ".", relative, stats, [Symbol.asyncDispose]: () => this.release() };
  }

  async #back(): Promise<void> {
    if (this.#open.length === 1) throw outside(this.#path);
    this.#names.pop();
    await this.#open.pop()?.[Symbol.asyncDispose]();
  }

  /** False when the name is no longer a directory and must be examined again. */
  async #enter(name: string): Promise<boolean> {
    const top = this.#top;
    try {
      const handle = await open(inDirectory(top, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      this.#open.push(openedDirectory(handle, join(top.path, name)));
      this.#names.push(name);
      return true;
    } catch (error) {
      const code = errnoOf(error);
      if (code !== "ELOOP" && code !== "ENOTDIR" && code !== "ENOENT") throw error;
      this.#race();
      return false;
    }
  }

  /** The parts to walk in place of a link, last one first. An absolute target starts at the root. */
  async #linkTarget(name: string): Promise<string[]> {
    this.#links += 1;
    if (this.#links > maxLinks) {
      throw new WorkspaceError("too_many_links", `"${displayPath(this.#path)}" contains too many symbolic links.`);
    }
    let target: string;
    try {
      target = await readlink(inDirectory(this.#top, name));
    } catch (error) {
      const code = errnoOf(error);
      if (code !== "EINVAL" && code !== "ENOENT") throw error;
      this.#race();
      return [name];
    }
    const parts = splitPath(target, this.#root);
    if (target.startsWith("/")) {
      await this.release();
      this.#names.length = 0;
    }
    return parts.toReversed();
  }

  #race(): void {
    this.#races += 1;
    if (this.#races > maxRaces + (this.#createParents ? 128 : 0)) throw changed(this.#path);
  }
}

async function makeDirectory(directory: Directory, name: string): Promise<void> {
  try {
    await mkdir(inDirectory(directory, name));
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  }
}
