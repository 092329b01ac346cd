// The tool `ls`: what a directory holds.
import type { Stats } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { z } from "zod";
import { defineTool, success } from "../tool.ts";
import { shown } from "../workspace/paths.ts";
import { inDirectory, kindOf, openDirectory, type Directory } from "../workspace/workspace.ts";

const maxEntries = 500;

export const lsTool = defineTool({
  name: "ls",
  aliases: ["list_dir", "LS"],
  summary: "List a directory.",
  description:
    "List a directory of the workspace, sorted by name: type, size in bytes and name; directories end in /. At most 500 entries.",
  args: z.strictObject({
    path: z.string().min(1).optional().describe("The directory, relative to the workspace. Default: the workspace."),
  }),
  class: "pure",
  readOnly: true,
  risk: "none",
  effects: ["reads_files"],
  timeoutMs: 30_000,
  run: async (args, context) => {
    await using place = await context.workspace.resolve(args.path ?? ".");
    if (place.stats !== null && !place.stats.isDirectory()) {
      return success(line(place.stats, place.relative, ""));
    }
    const directory = await openDirectory(place);
    try {
      const names = (await readdir(inDirectory(directory, "."))).sort();
      if (names.length === 0) return success(`"${shown(place.relative)}" is empty.`);
      const lines: string[] = [];
      for (const name of names.slice(0, maxEntries)) lines.push(await describeEntry(directory, name));
      if (names.length > maxEntries) {
        lines.push(
          `[${names.length - maxEntries} of ${names.length} entries are not shown; use glob to narrow them down]`,
        );
      }
      return success(lines.join("\n"));
    } finally {
      await directory.handle.close();
    }
  },
});

async function describeEntry(directory: Directory, name: string): Promise<string> {
  try {
    const stats = await lstat(inDirectory(directory, name));
    const target = stats.isSymbolicLink() ? await readlink(inDirectory(directory, name)) : "";
    return line(stats, name, target);
  } catch {
    // Gone since it was listed.
    return `?     ${"-".padStart(12)}  ${shown(name)}`;
  }
}

function line(stats: Stats, name: string, target: string): string {
  const type = stats.isFile() ? "file" : stats.isDirectory() ? "dir" : stats.isSymbolicLink() ? "link" : "other";
  const size = stats.isFile() ? String(stats.size) : "-";
  const suffix = stats.isDirectory() ? "/" : target === "" ? "" : ` -> ${shown(target)}`;
  const remark = type === "other" ? ` (${kindOf(stats)})` : "";
  return `${type.padEnd(5)} ${size.padStart(12)}  ${shown(name)}${suffix}${remark}`;
}
