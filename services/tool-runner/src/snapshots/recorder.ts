// Captures files before a tool changes them, once per user's turn: first the content, then the row that refers to it, and only then
// does the tool continue. A failed capture never stops a tool: it is recorded as untracked, or logged.
import { setTimeout as delay } from "node:timers/promises";
import { maxCapturedPathCharacters, type CapturedFile } from "@parley/contracts";
import { WorkspaceError } from "../workspace/errors.ts";
import { splitPath } from "../workspace/paths.ts";
import { runOnText } from "../text/text-worker.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { ContentStore } from "./content-store.ts";
import { capture } from "./capture.ts";
import { openEntry } from "./entry.ts";
import { expandChanges } from "./expand.ts";
import type { CheckpointClient } from "./checkpoint-client.ts";

/** Called by mutating tools before they change anything. Neither method throws, and both wait for a running rewind. */
export interface Checkpoint {
  /** Captures these paths, which the tool is about to change; for a symbolic link, its target as well. */
  track(paths: readonly string[]): Promise<void>;
  /** Captures what a command line will probably change; see `predict.ts` for the coverage. */
  trackCommand(command: string, directory: string): Promise<void>;
}

/** A call: the user's turn that it works for, its grant and its workspace; without one the main workspace. */
export interface CheckpointedCall {
  rootTurnId: string;
  grant: string;
  workspace?: Workspace;
}

/** For deployments without checkpoints. */
export const noCheckpoint: Checkpoint = { track: async () => undefined, trackCommand: async () => undefined };

export interface RecorderDependencies {
  /** The main workspace. */
  workspace: Workspace;
  blobs: ContentStore;
  rows: CheckpointClient;
  maxFileBytes: number;
  /** Called for a file that could not be captured; its row records this, too. */
  onUntracked: (checkpointId: string, path: string, reason: string) => void;
  /** Called when nothing could be recorded: a rewind cannot undo these changes. */
  onFailure: (checkpointId: string, error: unknown) => void;
  faultPoint: (name: string) => void;
  /** How long a tool waits for a running rewind. */
  patienceMs: number;
}

/** Interval between polls for the end of a rewind. */
const pollMs = 100;
/** Time limit for parsing the command line, which delays the command. */
const predictMs = 2_000;
/** Paths cached as captured, so that a turn that writes a file a hundred times sends one request. */
const maxRemembered = 20_000;

interface Looked {
  relative: string;
  absent: boolean;
}

export class CheckpointRecorder {
  readonly #deps: RecorderDependencies;
  /** `<checkpoint> <path>`, oldest first. */
  readonly #kept = new Set<string>();

  constructor(deps: RecorderDependencies) {
    this.#deps = deps;
  }

  /** The checkpoint of the user's turn that a call works for. */
  forCall(given: CheckpointedCall, signal: AbortSignal): Checkpoint {
    const call = { ...given, workspace: given.workspace ?? this.#deps.workspace };
    const { rootTurnId } = call;
    return {
      track: (paths) => this.#guarded(rootTurnId, () => this.#track(call, paths, signal)),
      trackCommand: (command, directory) =>
        this.#guarded(rootTurnId, async () => {
          const changes = await runOnText("predict", { command, directory }, signal, predictMs);
          if (changes.length === 0) return;
          const { paths, untracked } = await expandChanges(call.workspace, changes);
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

  async #track(call: Required<CheckpointedCall>, paths: readonly string[], signal: AbortSignal): Promise<void> {
    const found = new Map<string, CapturedFile>();
    for (const path of paths) await this.#look(call, path, found);
    await this.#write(call, [...found.values()], signal);
    // A sweep may have removed content before the row referred to it. Nothing has changed yet, so it can be captured again.
    for (const file of found.values()) {
      if (!("sha256" in file) || (await this.#deps.blobs.has(file.sha256))) continue;
      await using entry = await openEntry(call.workspace, file.path);
      await capture(entry, this.#deps.blobs.put, this.#deps.maxFileBytes);
    }
  }

  /** Adds the path, missing directories on the way to it, and for a link its target. */
  async #look(
    call: Required<CheckpointedCall>,
    path: string,
    found: Map<string, CapturedFile>,
  ): Promise<Looked | undefined> {
    const { workspace, rootTurnId: checkpointId } = call;
    const { blobs, maxFileBytes } = this.#deps;
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
      // Paths outside the workspace or below a file are ignored. Below a missing directory, the tool may create all parts.
      return error.code === "not_found" ? this.#captureParents(call, path, found) : undefined;
    }
  }

  async #captureParents(
    call: Required<CheckpointedCall>,
    path: string,
    found: Map<string, CapturedFile>,
  ): Promise<Looked | undefined> {
    const parts = splitPath(path, call.workspace.root);
    const name = parts.pop();
    if (name === undefined || name === ".." || parts.includes("..")) return undefined;
    const above = await this.#look(call, parts.join("/"), found);
    if (above?.absent !== true) return undefined;
    const relative = `${above.relative}/${name}`;
    if (!this.#isKept(call.rootTurnId, relative)) found.set(relative, { kind: "absent", path: relative });
    return { relative, absent: true };
  }

  /** The workspace folder itself is never captured: it always exists. */
  #isKept(checkpointId: string, relative: string): boolean {
    return relative === "." || this.#kept.has(`${checkpointId} ${relative}`);
  }

  async #write(
    { rootTurnId: checkpointId, grant }: CheckpointedCall,
    files: readonly CapturedFile[],
    signal: AbortSignal,
  ): Promise<void> {
    const { rows, onUntracked, faultPoint, patienceMs } = this.#deps;
    const fitting = files.filter(({ path }) => path.length <= maxCapturedPathCharacters && path.isWellFormed());
    for (const file of files) {
      if (!fitting.includes(file)) onUntracked(checkpointId, file.path, "the path is too long or not valid text");
      if (file.kind === "untracked") onUntracked(checkpointId, file.path, file.reason);
    }
    if (fitting.length === 0) return;
    faultPoint("checkpoint.before_row");
    const deadline = performance.now() + patienceMs;
    while (!(await rows.track({ grant }, fitting))) {
      if (performance.now() > deadline) throw new Error("another rewind did not finish in time");
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
