// Puts one path back to how it stood. It walks as the tools do, from open directory to open directory, and beyond that follows
// no link at all: what a link leads to elsewhere was not what was kept. Nothing is replaced before it has been kept itself.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rmdir, symlink, unlink, type FileHandle } from "node:fs/promises";
import type { KeptFile, RewoundFile } from "@parley/contracts";
import { describeFileError, errnoOf } from "../workspace/errors.ts";
import { inDirectory, kindOf, openDirectory, type Workspace } from "../workspace/workspace.ts";
import { digest, type Blobs } from "./blobs.ts";
import { capture } from "./capture.ts";
import { openEntry, type Entry } from "./entry.ts";

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
/** What the owner of a directory needs to put files into it. */
const ownerBits = 0o700;

export interface RestoreGround {
  workspace: Workspace;
  blobs: Blobs;
  /** Ends the name of the file that is written before it takes its place; the same when a rewind is done again. */
  mark: string;
  /** Keeps what stands there now, so that the rewind can be undone. Throws when it cannot be written down. */
  keep: (now: KeptFile) => Promise<void>;
}

/** Why a path was left as it is, or could not be put back. */
class Left extends Error {
  override readonly name = "Left";
  readonly outcome: "skipped" | "failed";

  constructor(outcome: "skipped" | "failed", message: string) {
    super(message);
    this.outcome = outcome;
  }
}

/** The order of work: what was not there goes first, deepest first; then the rest, directories before what is in them. */
export function orderOfWork(files: readonly KeptFile[]): KeptFile[] {
  const byPath = files.toSorted((a, b) => (a.path < b.path ? -1 : 1));
  return [
    ...byPath.filter(({ kind }) => kind === "absent").toReversed(),
    ...byPath.filter(({ kind }) => kind !== "absent"),
  ];
}

/** What `putBack` would do, as far as it can be seen without doing it. */
export function foresee(wanted: KeptFile, ground: Omit<RestoreGround, "keep">): Promise<RewoundFile> {
  return answered(wanted, async () => {
    await using entry = await openWanted(wanted, ground.workspace, undefined);
    if (entry === undefined) {
      if (wanted.kind === "absent") throw asItWas();
    } else await lookNow(entry, wanted, (each) => capture(each, digest, Number.POSITIVE_INFINITY));
    if ("sha256" in wanted && !(await ground.blobs.has(wanted.sha256))) throw missing();
  });
}

export function putBack(wanted: KeptFile, ground: RestoreGround): Promise<RewoundFile> {
  return answered(wanted, async () => {
    await using content = await contentOf(wanted, ground.blobs);
    await using entry = await openWanted(wanted, ground.workspace, wanted.kind === "absent" ? undefined : ground.keep);
    if (entry === undefined) throw asItWas();
    const now = await lookNow(entry, wanted, (each) => capture(each, ground.blobs.put, Number.POSITIVE_INFINITY));
    await ground.keep(now);
    await replace(entry, wanted, now, content, ground.mark);
  });
}

/** Gives a directory its own permissions, after its files have been put back. */
export async function settleDirectory(wanted: KeptFile, workspace: Workspace): Promise<void> {
  if (wanted.kind !== "directory" || (wanted.mode & ownerBits) === ownerBits) return;
  await using entry = await openEntry(workspace, wanted.path);
  if (entry.relative === wanted.path && entry.stats?.isDirectory() === true) await changeMode(entry, wanted.mode);
}

async function answered(wanted: KeptFile, work: () => Promise<void>): Promise<RewoundFile> {
  const { path } = wanted;
  try {
    if (wanted.kind === "untracked") throw new Left("skipped", `it was not kept: ${wanted.reason}`);
    await work();
    return { path, outcome: wanted.kind === "absent" ? "removed" : "restored", reason: null };
  } catch (error) {
    if (error instanceof Left) return { path, outcome: error.outcome, reason: error.message };
    const reason = describeFileError(error);
    if (reason === undefined) throw error;
    return { path, outcome: "failed", reason };
  }
}

/**
 * The wanted name in its directory. Directories missing on the way are made where `keep` is given; else undefined says that one
 * is. Throws Left where a link or a file is in the way.
 */
async function openWanted(
  { path }: KeptFile,
  workspace: Workspace,
  keep: RestoreGround["keep"] | undefined,
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
      throw new Left("failed", `"${above}" is ${kindOf(entry.stats)} now`);
    }
  }
  const entry = await openEntry(workspace, path);
  if (entry.relative === path) return entry;
  await entry[Symbol.asyncDispose]();
  throw elsewhere(path);
}

/** What stands there now. Throws Left where that is what is wanted, or must not be replaced. */
async function lookNow(entry: Entry, wanted: KeptFile, look: (entry: Entry) => Promise<KeptFile>): Promise<KeptFile> {
  const now = await look(entry);
  if (now.kind === "untracked") {
    throw new Left("skipped", `what is there now cannot be kept (${now.reason}), so it was left as it is`);
  }
  if (isSame(now, wanted)) throw asItWas();
  return now;
}

function isSame(now: KeptFile, wanted: KeptFile): boolean {
  if (now.kind === "file" && wanted.kind === "file") return now.sha256 === wanted.sha256 && now.mode === wanted.mode;
  if (now.kind === "link" && wanted.kind === "link") return now.sha256 === wanted.sha256;
  if (now.kind === "directory" && wanted.kind === "directory") return now.mode === wanted.mode;
  return now.kind === "absent" && wanted.kind === "absent";
}

async function replace(
  entry: Entry,
  wanted: KeptFile,
  now: KeptFile,
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
  const handle = await open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
  try {
    const hash = createHash("sha256");
    for await (const chunk of content.createReadStream({ autoClose: false, start: 0 })) {
      const bytes = Buffer.from(chunk as Uint8Array);
      hash.update(bytes);
      await handle.writeFile(bytes);
    }
    if (hash.digest("hex") !== wanted.sha256) throw damaged();
    await handle.chmod(wanted.mode);
  } finally {
    await handle.close();
  }
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
      throw new Left(otherwise, "it is a directory now, and there is something in it that was not kept");
    }
    throw error;
  }
}

async function changeMode(entry: Entry, mode: number): Promise<void> {
  const stats = entry.stats?.isDirectory() === true ? entry.stats : null;
  const directory = stats === null ? await reopened(entry) : await openDirectory(entry);
  try {
    await directory.handle.chmod(mode);
  } finally {
    await directory.handle.close();
  }
}

/** The directory that was just made under the name. */
async function reopened(entry: Entry): ReturnType<typeof openDirectory> {
  const handle = await open(inDirectory(entry.directory, entry.name), constants.O_DIRECTORY | O_NOFOLLOW);
  return { handle, path: entry.relative };
}

async function contentOf(wanted: KeptFile, blobs: Blobs): Promise<FileHandle | undefined> {
  if (!("sha256" in wanted)) return undefined;
  const handle = await blobs.open(wanted.sha256);
  if (handle === undefined) throw missing();
  return handle;
}

const asItWas = () => new Left("skipped", "it is as it was");
const missing = () => new Left("failed", "its kept content is missing");
const damaged = () => new Left("failed", "its kept content is damaged");
const elsewhere = (path: string) => new Left("failed", `a symbolic link at "${path}" now leads elsewhere`);
