// Walks a path component by component from an open directory: each component is opened relative to the descriptor of its parent and never
// through a symbolic link. The components of a link's target are walked in the same way; `..` returns to the parent's descriptor.
import { constants, type Stats } from "node:fs";
import { mkdir, open, readlink } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, WorkspaceError } from "./errors.ts";
import { outsideError, displayPath, splitPath } from "./paths.ts";
import {
  changedError,
  inDirectory,
  kindOf,
  notFoundError,
  openedDirectory,
  statsOf,
  type Directory,
  type ResolvedPath,
} from "./directory-handles.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
const maxLinks = 40;
/** How often a component may change between lstat and open before the walk fails. */
const maxRaces = 16;
/** Each parent that the walk creates is examined again and counts as a race. */
const maxCreatedParents = 128;

/** The state of one walk: its open directories, their names, and the numbers of links and races so far. */
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

  /** Walks all components. The last one may be missing or a file; a link is followed. Throws WorkspaceError. */
  async resolve(components: string[]): Promise<ResolvedPath> {
    const remaining = components.toReversed();
    for (;;) {
      const name = remaining.pop();
      if (name === undefined) return this.#currentDirectory();
      if (name === "..") {
        await this.#leave();
        continue;
      }
      const stats = await statsOf(this.#top, name);
      if (stats === null) {
        if (remaining.length === 0) return this.#resolvedPath(name, null);
        if (!this.#createParents || remaining.includes("..")) throw notFoundError([...this.#names, name].join("/"));
        await makeDirectory(this.#top, name);
        remaining.push(name);
        this.#countRace();
      } else if (stats.isSymbolicLink()) {
        remaining.push(...(await this.#linkTarget(name)));
      } else if (remaining.length === 0) {
        return this.#resolvedPath(name, stats);
      } else if (stats.isDirectory()) {
        if (!(await this.#enter(name))) remaining.push(name);
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
    if (top === undefined) throw outsideError(this.#path);
    return top;
  }

  #resolvedPath(name: string, stats: Stats | null): ResolvedPath {
    return {
      directory: this.#top,
      name,
      relative: [...this.#names, name].join("/"),
      stats,
      [Symbol.asyncDispose]: () => this.release(),
    };
  }

  /** The current directory as the result of the walk. */
  async #currentDirectory(): Promise<ResolvedPath> {
    const stats = await this.#top.handle.stat();
    const relative = this.#names.length === 0 ? "." : this.#names.join("/");
    return { directory: this.#top, name: ".", relative, stats, [Symbol.asyncDispose]: () => this.release() };
  }

  async #leave(): Promise<void> {
    if (this.#open.length === 1) throw outsideError(this.#path);
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
      this.#countRace();
      return false;
    }
  }

  /** The components to walk in place of a link, the last one first. An absolute target starts at the root. */
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
      this.#countRace();
      return [name];
    }
    const components = splitPath(target, this.#root);
    if (target.startsWith("/")) {
      await this.release();
      this.#names.length = 0;
    }
    return components.toReversed();
  }

  #countRace(): void {
    this.#races += 1;
    if (this.#races > maxRaces + (this.#createParents ? maxCreatedParents : 0)) throw changedError(this.#path);
  }
}

async function makeDirectory(directory: Directory, name: string): Promise<void> {
  try {
    await mkdir(inDirectory(directory, name));
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  }
}
