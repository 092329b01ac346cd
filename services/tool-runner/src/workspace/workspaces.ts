// The workspaces of a tool-runner: the owner's, which is always open, and those of other people, which are opened for a call. A bounded
// number of them stays open afterwards; one that is in use is never closed.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { mainWorkspaceId } from "@parley/contracts";
import type { RoomRules } from "./room.ts";
import type { TaintedFiles } from "./tainted-files.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

/** A workspace in use, until it is disposed. */
export interface WorkspaceLease extends AsyncDisposable {
  readonly workspace: Workspace;
  /** Which of its files are tainted; left out: none is recorded. */
  readonly tainted?: TaintedFiles | undefined;
}

export interface WorkspacesOptions {
  main: Workspace;
  /** The records of tainted files of a workspace; left out: none are kept. */
  taintedFilesOf?: (workspace: Workspace) => Promise<TaintedFiles>;
  /** Outside of the main workspace; each of the others is `<folder>/<id>/workspace`. */
  folder: string;
  /** Of each of the others. */
  rules: RoomRules;
  /** Workspaces that stay open without a call; left out: 64. */
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

  /** `id`: checked by the contract, so that it names a folder; left out: the owner's. Rejects when the folder cannot be opened. */
  async take(id: string = mainWorkspaceId): Promise<WorkspaceLease> {
    if (id === mainWorkspaceId) {
      this.#main ??= this.#withTaint(this.#options.main);
      return { ...(await this.#main), [Symbol.asyncDispose]: async () => undefined };
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

  /** The owner's workspace is closed by the caller. */
  async [Symbol.asyncDispose](): Promise<void> {
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(all.map(close));
  }

  async #openOne(id: string): Promise<Opened> {
    const { folder, rules } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return this.#withTaint(await openWorkspace(join(folder, id, "workspace"), rules, join(folder, id), id));
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
