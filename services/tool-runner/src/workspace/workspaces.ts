// The workspaces of a tool-runner: the owner's, which is always open, the owner's named folders and other people's, which are opened on
// demand. A bounded number of idle ones stays open; one in use is never closed.
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isOwnersWorkspace, mainWorkspaceId } from "@parley/contracts";
import { WorkspaceError } from "./errors.ts";
import type { QuotaRules } from "./quota.ts";
import type { TaintedFiles } from "./tainted-files.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

/** A workspace in use, until it is disposed. */
export interface WorkspaceLease extends AsyncDisposable {
  readonly workspace: Workspace;
  /** Its taint records; omitted: file taint is not recorded. */
  readonly tainted?: TaintedFiles | undefined;
}

export interface WorkspacesOptions {
  main: Workspace;
  /** Opens the taint records of a workspace; omitted: file taint is not recorded. */
  taintedFilesOf?: (workspace: Workspace) => Promise<TaintedFiles>;
  /** The owner's named folders, by the id of the workspace. */
  folders?: ReadonlyMap<string, string>;
  /** Folder outside the main workspace; each workspace of other people is `<folder>/<id>/workspace`. */
  folder: string;
  /** Quota of each of the others. */
  rules: QuotaRules;
  /** Idle workspaces that stay open; default: 64. */
  maxIdle?: number;
}

interface Opened {
  workspace: Workspace;
  tainted: TaintedFiles | undefined;
}

interface Open {
  opened: Promise<Opened>;
  uses: number;
}

export class Workspaces implements AsyncDisposable {
  readonly #options: WorkspacesOptions;
  /** Least recently used first. */
  readonly #open = new Map<string, Open>();
  #main: Promise<Opened> | undefined;

  constructor(options: WorkspacesOptions) {
    this.#options = options;
  }

  get main(): Workspace {
    return this.#options.main;
  }

  /** `id` is validated by the contract as a folder name; default: the owner's. Rejects when the folder cannot be opened. */
  async take(id: string = mainWorkspaceId): Promise<WorkspaceLease> {
    if (id === mainWorkspaceId) {
      const main = (this.#main ??= this.#withTaint(this.#options.main));
      try {
        return { ...(await main), [Symbol.asyncDispose]: async () => undefined };
      } catch (error) {
        // The next call tries again.
        if (this.#main === main) this.#main = undefined;
        throw error;
      }
    }
    const open = this.#open.get(id) ?? { opened: this.#openOne(id), uses: 0 };
    this.#open.delete(id);
    this.#open.set(id, open);
    open.uses += 1;
    try {
      return { ...(await open.opened), [Symbol.asyncDispose]: () => this.#leave(open) };
    } catch (error) {
      // The next call tries again.
      if (this.#open.get(id) === open) this.#open.delete(id);
      throw error;
    }
  }

  /** Closes all workspaces except the owner's, which the caller closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(all.map(close));
  }

  async #openOne(id: string): Promise<Opened> {
    const { folder, rules } = this.#options;
    const path = isOwnersWorkspace(id) ? await this.#namedFolder(id) : join(folder, id, "workspace");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return this.#withTaint(await openWorkspace(path, rules, join(folder, id), id));
  }

  /** A folder that is missing is not created: it may be a disk that is not mounted. */
  async #namedFolder(id: string): Promise<string> {
    const path = this.#options.folders?.get(id);
    if (path === undefined) throw new WorkspaceError("not_found", `no folder of this tool-runner has the name ${id}.`);
    const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    if (found?.isDirectory() === true) return path;
    throw new WorkspaceError(
      "not_found",
      `the folder ${path} ${found === null ? "does not exist" : "is not a folder"}.`,
    );
  }

  async #withTaint(workspace: Workspace): Promise<Opened> {
    return { workspace, tainted: await this.#options.taintedFilesOf?.(workspace) };
  }

  async #leave(open: Open): Promise<void> {
    open.uses -= 1;
    const { maxIdle = 64 } = this.#options;
    const idle = [...this.#open].filter(([, { uses }]) => uses === 0);
    const surplus = idle.slice(0, Math.max(0, idle.length - maxIdle));
    for (const [id] of surplus) this.#open.delete(id);
    await Promise.all(surplus.map(([, each]) => close(each)));
  }
}

async function close({ opened }: Open): Promise<void> {
  const found = await opened.catch(() => undefined);
  await found?.workspace[Symbol.asyncDispose]();
}
