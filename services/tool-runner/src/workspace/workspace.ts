// The workspace folder, and the only way to resolve a path in it: `..`, links, absolute paths and links swapped in during the walk cannot
// leave it. It does not know what the tools do with a file.
import { constants } from "node:fs";
import { mkdir, open, realpath, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { mainWorkspaceId } from "@parley/contracts";
import { WorkspaceError } from "./errors.ts";
import { compileDenyRules, type IsDenied } from "./denied.ts";
import { PathWalk } from "./path-walk.ts";
import { displayPath, splitPath, stateFolderOf } from "./paths.ts";
import { openedDirectory, type Directory, type ResolvedPath } from "./directory-handles.ts";
import { WorkspaceQuota, unlimitedQuota, type QuotaRules } from "./quota.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;

/** What a view of a workspace does with each resolved place. */
interface PlaceFilter {
  isDenied?: IsDenied;
  onPlace?: (place: ResolvedPath) => Promise<void>;
}

export class Workspace implements AsyncDisposable {
  /** Unique in a deployment: `main` is the owner's. */
  readonly id: string;
  /** Absolute, without symbolic links. */
  readonly root: string;
  /** The quota; every writer must check it. */
  readonly quota: WorkspaceQuota;
  /** Folder of its file locks, outside the workspace. */
  readonly lockFolder: string;
  readonly #directory: Directory;
  readonly #filter: PlaceFilter;

  constructor(
    root: string,
    handle: FileHandle,
    room: QuotaRules | WorkspaceQuota,
    { id, lockFolder }: Pick<Workspace, "id" | "lockFolder">,
    filter: PlaceFilter = {},
  ) {
    this.id = id;
    this.root = root;
    this.lockFolder = lockFolder;
    this.quota = room instanceof WorkspaceQuota ? room : new WorkspaceQuota(root, room);
    this.#directory = openedDirectory(handle, root);
    this.#filter = filter;
  }

  /** A view of this workspace; `onPlace` is awaited for each resolved place before the caller gets it. Must not be disposed. */
  observed(onPlace: (place: ResolvedPath) => Promise<void>): Workspace {
    return this.#with({ onPlace });
  }

  /** A view of this workspace that denies paths matching permission rule patterns. Must not be disposed. */
  without(patterns: readonly string[]): Workspace {
    return patterns.length === 0 ? this : this.#with({ isDenied: compileDenyRules(patterns) });
  }

  /** Whether a path (relative to the workspace folder, without links) is denied. */
  isDenied(relative: string): boolean {
    return this.#filter.isDenied?.(relative) === true;
  }

  /** Tests paths like `isDenied`; undefined when none is denied. */
  get denied(): IsDenied | undefined {
    return this.#filter.isDenied;
  }

  #with(filter: PlaceFilter): Workspace {
    return new Workspace(this.root, this.#directory.handle, this.quota, this, { ...this.#filter, ...filter });
  }

  /**
   * Resolves a path. With `createParents`, missing parent directories are created. The last part may be missing.
   * Throws WorkspaceError. The caller disposes the place.
   */
  async resolve(path: string, options: { createParents?: boolean } = {}): Promise<ResolvedPath> {
    const walk = new PathWalk(path, this.root, this.#directory, options.createParents ?? false);
    try {
      const place = await walk.resolve(splitPath(path, this.root));
      if (this.isDenied(place.relative)) {
        throw new WorkspaceError("denied", `A permission rule denies access to "${displayPath(place.relative)}".`);
      }
      await this.#filter.onPlace?.(place);
      return place;
    } catch (error) {
      await walk.release();
      throw error;
    }
  }

  /** Opens and closes the folder. Rejects when that fails; does not settle while the file system threads are blocked. */
  async check(): Promise<void> {
    await (await open(this.root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)).close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#directory[Symbol.asyncDispose]();
  }
}

/**
 * Opens the workspace folder, creating it if missing. `state`: the folder of the service's own files for this workspace, the same for
 * all replicas that share it; default: `.<name>-state` next to the workspace. `id`: default: the owner's.
 */
export async function openWorkspace(
  path: string,
  rules: QuotaRules = unlimitedQuota,
  state?: string,
  id: string = mainWorkspaceId,
): Promise<Workspace> {
  await mkdir(path, { recursive: true });
  const root = await realpath(path);
  const lockFolder = join(state ?? stateFolderOf(root), "locks");
  return new Workspace(root, await open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), rules, { id, lockFolder });
}
