// Keeps files as they are before a tool changes them, once a user's turn: content first, then the row that names it, and only
// then may the tool go on. What cannot be kept never stops a tool: it is written down as untracked, or logged.
import { setTimeout as delay } from "node:timers/promises";
import { maxKeptPathCharacters, type KeptFile } from "@parley/contracts";
import { WorkspaceError } from "../workspace/errors.ts";
import { splitPath } from "../workspace/paths.ts";
import type { TextWorker } from "../text/text-worker.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { Blobs } from "./blobs.ts";
import { capture } from "./capture.ts";
import { openEntry } from "./entry.ts";
import { expandChanges } from "./expand.ts";
import type { Rows } from "./rows.ts";

/** What a mutating tool says before it changes anything. Neither throws, and both wait while a rewind is at work. */
export interface Checkpoint {
  /** Keeps what stands at these paths, which the tool is about to change; below a symbolic link, what it leads to as well. */
  track(paths: readonly string[]): Promise<void>;
  /** Keeps what a command line will probably change; see `predict.ts` for what is foreseen. */
  trackCommand(command: string, directory: string): Promise<void>;
}

/** A call, by the user's turn that it works for and its rights. */
export interface CheckpointedCall {
  rootTurnId: string;
  grant: string;
}

/** For deployments that keep no checkpoints. */
export const noCheckpoint: Checkpoint = { track: async () => undefined, trackCommand: async () => undefined };

export interface KeeperDependencies {
  workspace: Workspace;
  textWorker: TextWorker;
  blobs: Blobs;
  rows: Rows;
  maxFileBytes: number;
  /** A file that could not be kept; its row says so too. */
  onUntracked: (checkpointId: string, path: string, reason: string) => void;
  /** Nothing could be written down: a rewind will not know of these changes. */
  onFailure: (checkpointId: string, error: unknown) => void;
  faultPoint: (name: string) => void;
  /** How long a tool waits for a rewind that is at work. */
  patienceMs: number;
}

/** Pause between looks whether a rewind has ended. */
const pollMs = 100;
/** How long the command line may be read: it waits for that. */
const predictMs = 2_000;
/** Paths remembered as kept, so that a turn that writes a file a hundred times asks once. */
const maxRemembered = 20_000;

interface Looked {
  relative: string;
  absent: boolean;
}

export class Keeper {
  readonly #deps: KeeperDependencies;
  /** `<checkpoint> <path>`, oldest first. */
  readonly #kept = new Set<string>();

  constructor(deps: KeeperDependencies) {
    this.#deps = deps;
  }

  /** The checkpoint of the user's turn that a call works for. */
  forCall(call: CheckpointedCall, signal: AbortSignal): Checkpoint {
    const { rootTurnId } = call;
    return {
      track: (paths) => this.#guarded(rootTurnId, () => this.#track(call, paths, signal)),
      trackCommand: (command, directory) =>
        this.#guarded(rootTurnId, async () => {
          const { workspace, textWorker } = this.#deps;
          const changes = await textWorker.run("predict", { command, directory }, signal, predictMs);
          if (changes.length === 0) return;
          const { paths, untracked } = await expandChanges(workspace, changes);
          await this.#write(call, untracked, signal);
          await this.#track(call, paths, signal);
        }),
    };
  }

  async #guarded(checkpointId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#deps.onFailure(checkpointId, error);
    }
  }

  async #track(call: CheckpointedCall, paths: readonly string[], signal: AbortSignal): Promise<void> {
    const found = new Map<string, KeptFile>();
    for (const path of paths) await this.#look(call.rootTurnId, path, found);
    await this.#write(call, [...found.values()], signal);
    // A sweep may have taken content away before the row named it; nothing has been changed yet, so it can be had again.
    for (const file of found.values()) {
      if (!("sha256" in file) || (await this.#deps.blobs.has(file.sha256))) continue;
      await using entry = await openEntry(this.#deps.workspace, file.path);
      await capture(entry, this.#deps.blobs.put, this.#deps.maxFileBytes);
    }
  }

  /** Adds the name, the directories that are missing on the way to it, and what it leads to where it is a link. */
  async #look(checkpointId: string, path: string, found: Map<string, KeptFile>): Promise<Looked | undefined> {
    const { workspace, blobs, maxFileBytes } = this.#deps;
    try {
      await using entry = await openEntry(workspace, path);
      const looked = { relative: entry.relative, absent: entry.stats === null };
      if (this.#isKept(checkpointId, looked.relative)) return looked;
      found.set(entry.relative, await capture(entry, blobs.put, maxFileBytes));
      if (entry.stats?.isSymbolicLink() !== true) return looked;
      await using place = await workspace.resolve(path);
      found.set(place.relative, await capture(place, blobs.put, maxFileBytes));
      return looked;
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error;
      // Outside, or below a file: not ours. Below what is missing: the tool may make all of it.
      return error.code === "not_found" ? this.#lookAbove(checkpointId, path, found) : undefined;
    }
  }

  async #lookAbove(checkpointId: string, path: string, found: Map<string, KeptFile>): Promise<Looked | undefined> {
    const parts = splitPath(path, this.#deps.workspace.root);
    const name = parts.pop();
    if (name === undefined || name === ".." || parts.includes("..")) return undefined;
    const above = await this.#look(checkpointId, parts.join("/"), found);
    if (above?.absent !== true) return undefined;
    const relative = `${above.relative}/${name}`;
    if (!this.#isKept(checkpointId, relative)) found.set(relative, { kind: "absent", path: relative });
    return { relative, absent: true };
  }

  /** The workspace folder itself is never kept: it is always there. */
  #isKept(checkpointId: string, relative: string): boolean {
    return relative === "." || this.#kept.has(`${checkpointId} ${relative}`);
  }

  async #write(
    { rootTurnId: checkpointId, grant }: CheckpointedCall,
    files: readonly KeptFile[],
    signal: AbortSignal,
  ): Promise<void> {
    const { rows, onUntracked, faultPoint, patienceMs } = this.#deps;
    const fitting = files.filter(({ path }) => path.length <= maxKeptPathCharacters && path.isWellFormed());
    for (const file of files) {
      if (!fitting.includes(file)) onUntracked(checkpointId, file.path, "the path is too long or not text");
      if (file.kind === "untracked") onUntracked(checkpointId, file.path, file.reason);
    }
    if (fitting.length === 0) return;
    faultPoint("checkpoint.before_row");
    const deadline = performance.now() + patienceMs;
    while (!(await rows.track({ grant }, fitting))) {
      if (performance.now() > deadline) throw new Error("a rewind has been at work for too long");
      await delay(pollMs, undefined, { signal });
    }
    for (const { path } of fitting) this.#remember(`${checkpointId} ${path}`);
  }

  #remember(key: string): void {
    this.#kept.add(key);
    const [oldest] = this.#kept;
    if (this.#kept.size > maxRemembered && oldest !== undefined) this.#kept.delete(oldest);
  }
}
