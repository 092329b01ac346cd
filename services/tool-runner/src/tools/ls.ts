// The tool `ls`: lists a directory.
import type { Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { z } from "zod";
import { documentsAt, orErrorText, noSuchDocument, type DocumentAccess } from "./document-access.ts";
import { documentNames, type Entry } from "../documents/paths.ts";
import { defineTool, success, type ToolContext, type ToolOutput } from "../tool/tool.ts";
import { displayPath } from "../workspace/paths.ts";
import { inDirectory, kindOf, openDirectory, type Directory } from "../workspace/directory-handles.ts";
import { listDocuments } from "./document-files.ts";

const maxEntries = 500;
/** How many entries are read from disk at the same time: one after the other, each waits for a thread of its own. */
const readAtOnce = 16;

export const lsTool = defineTool({
  name: "ls",
  aliases: ["list_dir", "LS"],
  summary: "List a directory.",
  description:
    "List a directory of the workspace, sorted by name: type, size in bytes and name; names of directories end in /. At most 500 entries.",
  args: z.strictObject({
    path: z.string().min(1).optional().describe("The directory, relative to the workspace. Default: the workspace."),
  }),
  examples: [{}, { path: "notes" }],
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: ["reads_files"],
  timeoutMs: 30_000,
  run: async (args, context) => {
    const access = documentsAt(args.path ?? ".", context);
    if (access === undefined) return listDirectory(args.path ?? ".", context);
    return orErrorText(async () => {
      if (access.path === "") return listRoot(access, context);
      const entries = await listDocuments(access);
      if (entries === undefined) return noSuchDocument(access.path);
      return listing(entries.map(entryLine), access.path);
    });
  },
});

async function listDirectory(path: string, context: ToolContext): Promise<ToolOutput> {
  await using place = await context.workspace.resolve(path);
  if (place.stats !== null && !place.stats.isDirectory()) {
    return success(line(place.stats, place.relative, ""));
  }
  await using directory = await openDirectory(place);
  const names = (await readdir(inDirectory(directory, "."))).sort();
  return await listing(
    names.map((name) => () => describeEntry(directory, name)),
    place.relative,
  );
}

/** The root: files on disk and documents in one list. */
async function listRoot(access: DocumentAccess, context: ToolContext): Promise<ToolOutput> {
  // The store answers while the directory is read.
  const requested = listDocuments(access);
  requested.catch(() => undefined);
  await using place = await context.workspace.resolve(".");
  await using directory = await openDirectory(place);
  const lines = new Map<string, () => string | Promise<string>>();
  for (const name of await readdir(inDirectory(directory, "."))) {
    if (!documentNames.has(name)) lines.set(name, () => describeEntry(directory, name));
  }
  for (const entry of (await requested) ?? []) lines.set(entry.name, entryLine(entry));
  const sorted = [...lines].sort(([a], [b]) => (a < b ? -1 : 1));
  return await listing(
    sorted.map(([, text]) => text),
    ".",
  );
}

/** Formats at most `maxEntries`; the others are never read from disk. */
async function listing(entries: readonly (() => string | Promise<string>)[], name: string): Promise<ToolOutput> {
  const lines: string[] = [];
  const shown = entries.slice(0, maxEntries);
  for (let at = 0; at < shown.length; at += readAtOnce)
    lines.push(...(await Promise.all(shown.slice(at, at + readAtOnce).map(async (describe) => describe()))));
  if (entries.length === 0) lines.push(`"${displayPath(name)}" is empty.`);
  if (entries.length > maxEntries) {
    lines.push(
      `[${entries.length - maxEntries} of ${entries.length} entries are not shown; use glob to narrow the list]`,
    );
  }
  return success(lines.join("\n"));
}

function entryLine({ name, isFolder, bytes }: Entry): () => string {
  const size = isFolder ? "-" : String(bytes);
  return () =>
    `${(isFolder ? "dir" : "file").padEnd(5)} ${size.padStart(12)}  ${displayPath(name)}${isFolder ? "/" : ""}`;
}

async function describeEntry(directory: Directory, name: string): Promise<string> {
  try {
    const stats = await lstat(inDirectory(directory, name));
    const target = stats.isSymbolicLink() ? await readlink(inDirectory(directory, name)) : "";
    return line(stats, name, target);
  } catch {
    // Deleted since it was listed.
    return `?     ${"-".padStart(12)}  ${displayPath(name)}`;
  }
}

function line(stats: Stats, name: string, target: string): string {
  const type = stats.isFile() ? "file" : stats.isDirectory() ? "dir" : stats.isSymbolicLink() ? "link" : "other";
  const size = stats.isFile() ? String(stats.size) : "-";
  const suffix = stats.isDirectory() ? "/" : target === "" ? "" : ` -> ${displayPath(target)}`;
  const remark = type === "other" ? ` (${kindOf(stats)})` : "";
  return `${type.padEnd(5)} ${size.padStart(12)}  ${displayPath(name)}${suffix}${remark}`;
}
