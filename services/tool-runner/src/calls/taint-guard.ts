// Tracks file taint around one tool call: files written by a tainted call are recorded, and results that show recorded files are
// marked as untrusted. Tools do not take part: the guard observes the paths that they resolve.
import type { Stats } from "node:fs";
import type { ToolDescriptor } from "@parley/contracts";
import type { ToolOutput } from "../tool/tool.ts";
import { wrapUntrusted } from "../tool/untrusted-block.ts";
import { WorkspaceError } from "../workspace/errors.ts";
import type { TaintedFiles } from "../workspace/tainted-files.ts";
import type { ResolvedPath } from "../workspace/directory-handles.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface GuardedCall {
  /** Undefined when the tool does not exist. */
  descriptor: Pick<ToolDescriptor, "name" | "effects"> | undefined;
  workspace: Workspace;
  /** Whether the turn is tainted. */
  tainted: boolean;
}

/** What the tool receives in place of the workspace and the call's taint. */
export interface GuardedContext {
  workspace: Workspace;
  tainted: boolean;
  /** Registers work that outlives the call. */
  waitUntil: (end: Promise<unknown>) => void;
}

type Run = (ground: GuardedContext) => Promise<ToolOutput>;

/** Lock files, which every write touches. */
const internal = ".parley/locks/";
const source = "a file that was written after reading untrusted content";

/** `files` is undefined when file taint is not recorded. Rejects when the records cannot be read, or not written before the call. */
export async function withTaint(files: TaintedFiles | undefined, call: GuardedCall, run: Run): Promise<ToolOutput> {
  if (files === undefined || call.descriptor === undefined) return run(plain(call));
  const { name, effects } = call.descriptor;
  // File access of MCP servers cannot be observed, and their results are always untrusted.
  if (name.startsWith("mcp_")) return run(plain(call));
  if (effects.includes("executes")) return runCommand(files, call, run);
  if (effects.includes("writes_files") || effects.includes("reads_files"))
    return runFileTool(files, call, call.descriptor, run);
  return run(plain(call));
}

function plain({ workspace, tainted }: GuardedCall): GuardedContext {
  return { workspace, tainted, waitUntil: () => undefined };
}

/** A command can read and copy every workspace file: if any file is tainted, its output and the files it changes are, too. */
async function runCommand(files: TaintedFiles, call: GuardedCall, run: Run): Promise<ToolOutput> {
  const readable = await files.any();
  const tainted = call.tainted || readable;
  const command = tainted ? await files.begin() : undefined;
  const left: Promise<unknown>[] = [];
  const end = async () => {
    await Promise.allSettled(left);
    await command?.end();
  };
  try {
    const output = await run({ workspace: call.workspace, tainted, waitUntil: (until) => left.push(until) });
    return readable ? { ...output, untrusted: true } : output;
  } finally {
    // On failure the command stays recorded as running, which is the safe side; its output is not lost.
    const ended = end().catch(() => undefined);
    if (left.length === 0) await ended;
  }
}

async function runFileTool(
  files: TaintedFiles,
  call: GuardedCall,
  { name, effects }: NonNullable<GuardedCall["descriptor"]>,
  run: Run,
): Promise<ToolOutput> {
  const writes = effects.includes("writes_files");
  // Writing untrusted content taints the file even if the turn is not tainted yet.
  const tainted = call.tainted || effects.includes("reads_untrusted");
  const seen = new Set<string>();
  const written = new Map<string, Stats | null>();
  const marked = new Set<string>();
  let shows = false;
  const checks: Promise<void>[] = [];
  const check = async (place: ResolvedPath) => {
    if (await isTainted(files, place)) shows = true;
  };
  const workspace = call.workspace.observed(async (place) => {
    const { relative: path, stats } = place;
    if (path.startsWith(internal) || seen.has(path)) return;
    seen.add(path);
    if (stats === null && !tainted) await files.clear(path);
    // Files are marked before they are written, so a check that starts before the read may end after it.
    else if (writes) await check(place);
    else checks.push(handled(check(place)));
    if (!writes || !tainted || stats?.isDirectory() === true) return;
    // Marked before the write: after a crash in between, the file counts as tainted.
    written.set(path, stats);
    if (await files.mark(path)) marked.add(path);
  });
  const output = await run({ ...plain(call), workspace });
  await Promise.all(checks);
  for (const [path, before] of written) {
    const unchanged = output.isError && (await isUnchanged(call.workspace, path, before));
    // Another call may have removed the record of a file that did not exist yet.
    if (!unchanged) await files.mark(path);
    else if (marked.has(path)) await files.clear(path);
  }
  if (name === "write") {
    if (!tainted && !output.isError) for (const path of seen) await files.clear(path);
    return output;
  }
  if (output.files !== undefined) shows = await anyTainted(files, output.files, call.workspace);
  if (!shows || output.isError || !effects.includes("reads_files")) return output;
  return { ...output, content: wrapUntrusted(source, output.content), untrusted: true };
}

/** Marks a promise that is awaited later, so that an early rejection is not reported as unhandled. */
function handled(work: Promise<void>): Promise<void> {
  work.catch(() => undefined);
  return work;
}

async function isTainted(files: TaintedFiles, { relative: path, stats }: ResolvedPath): Promise<boolean> {
  return stats?.isDirectory() === true ? files.inDirectory(path) : files.has(path, stats);
}

/** False also when it cannot be determined: a failed call may have written some of its files. */
async function isUnchanged(workspace: Workspace, path: string, before: Stats | null): Promise<boolean> {
  try {
    await using place = await workspace.resolve(path);
    const now = place.stats;
    if (now === null || before === null) return now === before;
    return now.ino === before.ino && now.ctimeMs === before.ctimeMs;
  } catch (error) {
    return before === null && error instanceof WorkspaceError && error.code === "not_found";
  }
}

async function anyTainted(files: TaintedFiles, paths: ReadonlySet<string>, workspace: Workspace): Promise<boolean> {
  for (const path of paths) {
    await using place = await workspace.resolve(path).catch(() => null);
    if (place !== null && (await isTainted(files, place))) return true;
  }
  return false;
}
