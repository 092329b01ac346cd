// Restores one path to its captured state. It walks like the tools, from open directory to open directory, and follows no link at
// all: the target of a link was not what was captured. Nothing is replaced before its current state has been captured.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rmdir, symlink, unlink, type FileHandle } from "node:fs/promises";
import type { CapturedFile, RewoundFile } from "@parley/contracts";
import { describeFileError, errnoOf } from "../workspace/errors.ts";
import { inDirectory, kindOf, openDirectory, openedDirectory } from "../workspace/directory-handles.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { digest, type ContentStore } from "./content-store.ts";
import { capture } from "./capture.ts";
import { openEntry, type Entry } from "./entry.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
/** Permissions that the owner of a directory needs to create files in it. */
const ownerBits = 0o700;

export interface RestoreContext {
  workspace: Workspace;
  blobs: ContentStore;
  /** Suffix of the temporary file; the same when a rewind is repeated. */
  mark: string;
  /** Captures the current state, so that the rewind can be undone. Throws when it cannot be recorded. */
  keep: (now: CapturedFile) => Promise<void>;
}

/** Why a path was skipped or could not be restored. */
class RestoreSkippedError extends Error {
  override readonly name = "RestoreSkippedError";
  readonly outcome: "skipped" | "failed";

  constructor(outcome: "skipped" | "failed", message: string) {
    super(message);
    this.outcome = outcome;
  }
}

/** The order of work: first removals of paths that were absent, deepest first; then the rest, directories before their contents. */
export function orderOfWork(files: readonly CapturedFile[]): CapturedFile[] {
  const byPath = files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return [
    ...byPath.filter(({ kind }) => kind === "absent").toReversed(),
    ...byPath.filter(({ kind }) => kind !== "absent"),
  ];
}

/** Previews `restoreEntry` without changing anything. */
export function previewRestore(wanted: CapturedFile, ground: Omit<RestoreContext, "keep">): Promise<RewoundFile> {
  return answered(wanted, async () => {
    await using entry = await openWanted(wanted, ground.workspace, undefined);
    if (entry === undefined) {
      if (wanted.kind === "absent") throw asItWas();
    } else await captureCurrent(entry, wanted, (each) => capture(each, digest, Number.POSITIVE_INFINITY));
    if ("sha256" in wanted && !(await ground.blobs.has(wanted.sha256))) throw missing();
  });
}

export function restoreEntry(wanted: CapturedFile, ground: RestoreContext): Promise<RewoundFile> {
  return answered(wanted, async () => {
    await using content = await contentOf(wanted, ground.blobs);
    await using entry = await openWanted(wanted, ground.workspace, wanted.kind === "absent" ? undefined : ground.keep);
    if (entry === undefined) throw asItWas();
    const now = await captureCurrent(entry, wanted, (each) =>
      capture(each, ground.blobs.put, Number.POSITIVE_INFINITY),
    );
    await ground.keep(now);
    await replace(entry, wanted, now, content, ground.mark);
  });
}

/** Restores a directory's permissions, after its files have been restored. */
export async function settleDirectory(wanted: CapturedFile, workspace: Workspace): Promise<void> {
  if (wanted.kind !== "directory" || (wanted.mode & ownerBits) === ownerBits) return;
  await using entry = await openEntry(workspace, wanted.path);
  if (entry.relative === wanted.path && entry.stats?.isDirectory() === true) await changeMode(entry, wanted.mode);
}

async function answered(wanted: CapturedFile, work: () => Promise<void>): Promise<RewoundFile> {
  const { path } = wanted;
  try {
    if (wanted.kind === "untracked") throw new RestoreSkippedError("skipped", `it was not captured: ${wanted.reason}`);
    await work();
    return { path, outcome: wanted.kind === "absent" ? "removed" : "restored", reason: null };
  } catch (error) {
    if (error instanceof RestoreSkippedError) return { path, outcome: error.outcome, reason: error.message };
    const reason = describeFileError(error);
    if (reason === undefined) throw error;
    return { path, outcome: "failed", reason };
  }
}

/**
 * Opens the entry to restore. With `keep`, missing parent directories are created; without it, undefined means that one is missing.
 * Throws Left when a link or a file is in the way.
 */
async function openWanted(
  { path }: CapturedFile,
  workspace: Workspace,
  keep: RestoreContext["keep"] | undefined,
): Promise<Entry | undefined> {
  const parts = path.split("/");
  for (let length = 1; length < parts.length; length++) {
    const above = parts.slice(0, length).join("/");
    await using entry = await openEntry(workspace, above);
    if (entry.relative !== above) throw elsewhere(above);
    if (entry.stats === null) {
      if (keep === undefined) return undefined;
      await keep({ kind: "absent", path: above });
      await mkdir(inDirectory(entry.directory, entry.name));
    } else if (!entry.stats.isDirectory()) {
      throw new RestoreSkippedError("failed", `"${above}" is now ${kindOf(entry.stats)}`);
    }
  }
  const entry = await openEntry(workspace, path);
  if (entry.relative === path) return entry;
  await entry[Symbol.asyncDispose]();
  throw elsewhere(path);
}

/** The current state. Throws Left when it equals the wanted state, or must not be replaced. */
async function captureCurrent(
  entry: Entry,
  wanted: CapturedFile,
  look: (entry: Entry) => Promise<CapturedFile>,
): Promise<CapturedFile> {
  const now = await look(entry);
  if (now.kind === "untracked") {
    throw new RestoreSkippedError(
      "skipped",
      `its current state cannot be captured (${now.reason}), so it was not changed`,
    );
  }
  if (isSame(now, wanted)) throw asItWas();
  return now;
}

function isSame(now: CapturedFile, wanted: CapturedFile): boolean {
  if (now.kind === "file" && wanted.kind === "file") return now.sha256 === wanted.sha256 && now.mode === wanted.mode;
  if (now.kind === "link" && wanted.kind === "link") return now.sha256 === wanted.sha256;
  if (now.kind === "directory" && wanted.kind === "directory") return now.mode === wanted.mode;
  return now.kind === "absent" && wanted.kind === "absent";
}

async function replace(
  entry: Entry,
  wanted: CapturedFile,
  now: CapturedFile,
  content: FileHandle | undefined,
  mark: string,
): Promise<void> {
  const path = inDirectory(entry.directory, entry.name);
  const clearDirectory = async () => {
    if (now.kind === "directory") await removeEmpty(path, wanted.kind === "absent" ? "skipped" : "failed");
  };
  if (wanted.kind === "absent") {
    if (now.kind === "directory") await clearDirectory();
    else await unlink(path);
  } else if (wanted.kind === "directory") {
    if (now.kind === "file" || now.kind === "link") await unlink(path);
    if (now.kind !== "directory") await mkdir(path);
    await changeMode(entry, wanted.mode | ownerBits);
  } else if (content !== undefined && "sha256" in wanted) {
    const temporary = inDirectory(entry.directory, `.parley-${mark}.tmp`);
    await unlink(temporary).catch(() => undefined);
    try {
      if (wanted.kind === "file") await writeFile(temporary, content, wanted);
      else await symlink(await verified(content, wanted.sha256), temporary);
      await clearDirectory();
      await rename(temporary, path);
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
  }
}

async function writeFile(path: string, content: FileHandle, wanted: { sha256: string; mode: number }): Promise<void> {
  await using handle = await open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  const hash = createHash("sha256");
  for await (const chunk of content.createReadStream({ autoClose: false, start: 0 })) {
    const bytes = Buffer.from(chunk as Uint8Array);
    hash.update(bytes);
    await handle.writeFile(bytes);
  }
  if (hash.digest("hex") !== wanted.sha256) throw damaged();
  await handle.chmod(wanted.mode);
}

async function verified(content: FileHandle, sha256: string): Promise<Buffer> {
  const bytes = await content.readFile();
  if (createHash("sha256").update(bytes).digest("hex") !== sha256) throw damaged();
  return bytes;
}

async function removeEmpty(path: string, otherwise: "skipped" | "failed"): Promise<void> {
  try {
    await rmdir(path);
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOTEMPTY" || code === "EEXIST") {
      throw new RestoreSkippedError(otherwise, "it is now a directory, and something in it was not captured");
    }
    throw error;
  }
}

async function changeMode(entry: Entry, mode: number): Promise<void> {
  const stats = entry.stats?.isDirectory() === true ? entry.stats : null;
  await using directory = stats === null ? await reopened(entry) : await openDirectory(entry);
  await directory.handle.chmod(mode);
}

/** Opens the directory that was just created under the name. */
async function reopened(entry: Entry): ReturnType<typeof openDirectory> {
  const handle = await open(inDirectory(entry.directory, entry.name), constants.O_DIRECTORY | O_NOFOLLOW);
  return openedDirectory(handle, entry.relative);
}

async function contentOf(wanted: CapturedFile, blobs: ContentStore): Promise<FileHandle | undefined> {
  if (!("sha256" in wanted)) return undefined;
  const handle = await blobs.open(wanted.sha256);
  if (handle === undefined) throw missing();
  return handle;
}

const asItWas = () => new RestoreSkippedError("skipped", "it is unchanged");
const missing = () => new RestoreSkippedError("failed", "its captured content is missing");
const damaged = () => new RestoreSkippedError("failed", "its captured content is damaged");
const elsewhere = (path: string) =>
  new RestoreSkippedError("failed", `a symbolic link at "${path}" now points elsewhere`);
