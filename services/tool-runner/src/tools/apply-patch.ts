// The tool `apply_patch`: several changes to several files, all or none. Every change is checked before the first write; a
// failing write rolls back the earlier ones.
import { unlink } from "node:fs/promises";
import { z } from "zod";
import { resolveDocument } from "./document-access.ts";
import { parsePatch, PatchError, type PatchOperation } from "../text/patch/parse.ts";
import { defineTool, failure, success, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { describeFileError, WorkspaceError } from "../workspace/errors.ts";
import { whileLocked } from "../workspace/locks.ts";
import { displayPath, splitPath } from "../workspace/paths.ts";
import { replaceFile } from "../workspace/replace.ts";
import { inDirectory, openFile } from "../workspace/directory-handles.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { runOnText } from "../text/text-worker.ts";

/** Leaves room for JSON escapes of quotes and line ends: a bus message has at most 512 KiB. */
const maxPatchCharacters = 200_000;
const maxFiles = 100;
const maxFileBytes = 10 * 1024 * 1024;
/** Sum over all files to be changed, moved or deleted: they are in memory at the same time. */
const maxTotalBytes = 64 * 1024 * 1024;
/** Each hunk may need a pass over its file. */
const maxHunks = 1_000;

/** The state of a path before and after the patch. */
interface Change {
  /** Relative to the workspace folder. */
  path: string;
  /** Null: no file. */
  before: { content: Buffer; mode: number } | null;
  after: { content: string | Uint8Array; mode: number | null } | null;
}

export const applyPatchTool = defineTool({
  name: "apply_patch",
  summary: "Change several files at once, all or none.",
  description: [
    "Change, add, delete and move workspace files with one patch. If any part does not apply, nothing is written.",
    "Format: `*** Begin Patch`; then for each file `*** Add File: path` with lines that begin with +, `*** Delete File: path`, or `*** Update File: path`",
    "(followed by `*** Move to: path` to move the file) with hunks; then `*** End Patch`. A hunk is `@@ a line above the change`, then lines that begin with a space (keep), - (remove) or + (add);",
    "add `*** End of File` if the hunk ends with the file. Include three lines of context around each change. Only white space may differ from the file.",
  ].join(" "),
  args: z.strictObject({
    patch: z.string().min(1).max(maxPatchCharacters).describe("The patch, from `*** Begin Patch` to `*** End Patch`."),
  }),
  examples: [
    {
      patch: [
        "*** Begin Patch",
        "*** Update File: notes/plan.md",
        "@@ # Plan",
        "-Buy tea.",
        "+Buy green tea.",
        "*** Add File: notes/done.md",
        "+Nothing yet.",
        "*** End Patch",
      ].join("\n"),
    },
  ],
  showExamples: true,
  class: "once",
  readOnly: false,
  risk: "medium",
  effects: ["reads_files", "writes_files"],
  resource: { kind: "path" },
  timeoutMs: 60_000,
  limits: [
    "At most 100 files of up to 10 MiB each and 64 MiB in total; 1,000 hunks; 200,000 characters of patch; 20 s per file.",
    "Files on disk only; change documents with edit or write.",
  ],
  run: async (args, context) => {
    try {
      const operations = parsePatch(args.patch);
      if (operations.length > maxFiles)
        return failure(
          `A patch may change at most ${maxFiles} files; this one changes ${operations.length}. Split it.`,
        );
      const hunks = operations.reduce((sum, each) => sum + ("hunks" in each ? each.hunks.length : 0), 0);
      if (hunks > maxHunks)
        return failure(`A patch may have at most ${maxHunks} hunks; this one has ${hunks}. Split it.`);
      const paths = operations.flatMap((operation) => pathsOf(operation));
      return await whileLocked(context.workspace, paths, context, () => applyAll(operations, context));
    } catch (error) {
      if (error instanceof PartialPatchError) return failure(error.message);
      if (!(error instanceof PatchError) && !(error instanceof WorkspaceError)) throw error;
      return failure(`Nothing was changed. ${error.message}`);
    }
  },
});

function pathsOf(operation: PatchOperation): string[] {
  return "to" in operation && operation.to !== undefined ? [operation.path, operation.to] : [operation.path];
}

/** Throws PatchError or WorkspaceError when any operation cannot be applied, before the first write. */
async function applyAll(operations: readonly PatchOperation[], context: ToolContext): Promise<ToolOutput> {
  const changes: Change[] = [];
  for (const operation of operations) {
    changes.push(...(await plan(operation, context)));
    const bytes = bytesOf(changes, "before");
    if (bytes > maxTotalBytes) {
      throw new PatchError(
        `The files of the patch have more than ${maxTotalBytes} bytes in total: use several patches.`,
      );
    }
  }
  const twice = changes.find((change, index) => changes.findIndex(({ path }) => path === change.path) !== index);
  if (twice !== undefined)
    return failure(`The patch names "${displayPath(twice.path)}" more than once; nothing was changed.`);
  context.signal.throwIfAborted();
  await context.workspace.quota.reserve(bytesOf(changes, "after"), bytesOf(changes, "before"));
  await context.checkpoint.track(changes.map(({ path }) => path));
  await carryOut(changes, context.workspace);
  return success(operations.map(describe).join("\n"));
}

function bytesOf(changes: readonly Change[], side: "before" | "after"): number {
  return changes.reduce((sum, change) => sum + sizeOf(change[side]?.content ?? ""), 0);
}

function sizeOf(content: string | Uint8Array): number {
  return typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
}

/** The changes of one operation. Throws PatchError or WorkspaceError when it does not apply. */
async function plan(operation: PatchOperation, context: ToolContext): Promise<Change[]> {
  const now = await currentContent(operation.path, context);
  const name = displayPath(operation.path);
  if (operation.kind === "add") {
    if (now.before !== null) throw new PatchError(`"${name}" already exists: update it, or delete it first.`);
    return [{ ...now, after: { content: operation.content, mode: null } }];
  }
  const { before } = now;
  if (before === null) throw new PatchError(`"${name}" does not exist.`);
  if (operation.kind === "delete") return [{ ...now, after: null }];
  let content: Uint8Array = before.content;
  if (operation.hunks.length > 0) {
    const { hunks } = operation;
    const patched = await runOnText("patch", { content, hunks, name }, context.signal);
    if (patched.status === "refused") throw new PatchError(patched.message);
    ({ content } = patched);
  }
  const after = { content, mode: before.mode };
  if (operation.to === undefined) return [{ ...now, after }];
  const there = await currentContent(operation.to, context);
  if (there.path === now.path) throw new PatchError(`"${name}" cannot move to itself.`);
  if (there.before !== null)
    throw new PatchError(`"${name}" cannot move: "${displayPath(operation.to)}" already exists.`);
  return [
    { ...there, after },
    { ...now, after: null },
  ];
}

async function currentContent(path: string, context: ToolContext): Promise<Pick<Change, "path" | "before">> {
  if (resolveDocument(path, context) !== undefined) {
    throw new PatchError(`"${displayPath(path)}" is a document: change it with edit or write.`);
  }
  try {
    await using place = await context.workspace.resolve(path);
    if (place.stats === null) return { path: place.relative, before: null };
    await using file = await openFile(place);
    const { handle, stats } = file;
    if (stats.size > maxFileBytes)
      throw new PatchError(`"${displayPath(path)}" has ${stats.size} bytes; the limit is ${maxFileBytes} bytes.`);
    return { path: place.relative, before: { content: await handle.readFile(), mode: stats.mode } };
  } catch (error) {
    // A parent directory is missing: it is created together with the file.
    if (error instanceof WorkspaceError && error.code === "not_found")
      return { path: splitPath(path, context.workspace.root).join("/"), before: null };
    throw error;
  }
}

async function carryOut(changes: readonly Change[], workspace: Workspace): Promise<void> {
  const done: Change[] = [];
  try {
    for (const change of changes) {
      await writeState(workspace, change.path, change.after);
      done.push(change);
    }
  } catch (error) {
    const left: string[] = [];
    for (const { path, before } of done.toReversed()) {
      await writeState(workspace, path, before).catch(() => left.push(path));
    }
    if (left.length > 0) throw new PartialPatchError(left, error);
    throw error;
  }
}

/** A write failed, and these files could not be restored. */
class PartialPatchError extends Error {
  override readonly name = "PartialPatchError";

  constructor(paths: readonly string[], cause: unknown) {
    const names = paths.map((path) => `"${displayPath(path)}"`).join(", ");
    super(
      `A write failed (${describeFileError(cause) ?? "internal error"}), and ${names} could not be restored: check these files.`,
      {
        cause,
      },
    );
  }
}

async function writeState(workspace: Workspace, path: string, state: Change["after"]): Promise<void> {
  await using place = await workspace.resolve(path, { createParents: state !== null });
  if (state === null) {
    if (place.stats !== null) await unlink(inDirectory(place.directory, place.name));
    return;
  }
  await replaceFile(place, state.content, state.mode);
}

function describe(operation: PatchOperation): string {
  const name = `"${displayPath(operation.path)}"`;
  if (operation.kind === "add") return `Added ${name}.`;
  if (operation.kind === "delete") return `Deleted ${name}.`;
  const count = operation.hunks.length;
  const hunks = `${count} ${count === 1 ? "hunk" : "hunks"}`;
  if (operation.to === undefined) return `Updated ${name}: ${hunks}.`;
  return `Moved ${name} to "${displayPath(operation.to)}"${count === 0 ? "" : `: ${hunks}`}.`;
}
