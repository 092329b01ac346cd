// A local folder with documents as files, a record of each file's base version, and the plan of a push or a pull.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { documentFolders, documentPathProblem, errorMessage } from "@parley/contracts";
import { z } from "zod";

import { CliError } from "../io/io.ts";

const basesFile = ".parley-docs.json";
const BasesFile = z.object({
  versions: z.record(z.string(), z.object({ version: z.number().int(), sha256: z.string() })),
});

/** The version that a file was made from, by path. */
export type Bases = Readonly<Record<string, { version: number; sha256: string }>>;

interface LocalDocument {
  path: string;
  content: string;
  sha256: string;
}

export interface Folder {
  documents: Map<string, LocalDocument>;
  bases: Bases;
  /** Files that cannot be documents, with the reason. */
  ignored: string[];
}

/** Throws CliError for an unreadable folder, and for a file that is not text. */
export function readFolder(root: string): Folder {
  const documents = new Map<string, LocalDocument>();
  const ignored: string[] = [];
  for (const path of candidates(root)) {
    const problem = documentPathProblem(path);
    if (problem !== null) {
      ignored.push(`${path}: ${problem}`);
      continue;
    }
    const content = textOf(join(root, path), path);
    documents.set(path, { path, content, sha256: sha256Of(content) });
  }
  return { documents, bases: readBases(root), ignored };
}

/** Possible document files: Markdown files in the folder itself, and all files in memory/ and skills/ that are not hidden. */
function candidates(root: string): string[] {
  if (!existsSync(root)) return [];
  const below = documentFolders.flatMap((folder) => {
    if (!existsSync(join(root, folder))) return [];
    return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(root.length + 1)
          .replaceAll("\\", "/"),
      );
  });
  const own = readdirSync(root, { withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.name.endsWith(".md"),
  );
  const files = [...own.map(({ name }) => name), ...below];
  return files.filter((path) => !path.split("/").some((part) => part.startsWith("."))).sort();
}

function textOf(file: string, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(file));
  } catch (error) {
    throw new CliError(`${path} cannot be a document: ${errorMessage(error)}`, { fix: "Documents are UTF-8 text." });
  }
}

function readBases(root: string): Bases {
  const file = join(root, basesFile);
  if (!existsSync(file)) return {};
  try {
    return BasesFile.parse(JSON.parse(readFileSync(file, "utf8"))).versions;
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${errorMessage(error)}`, {
      fix: "Remove it: every file is then compared with the store again.",
    });
  }
}

export function writeBases(root: string, versions: Bases): void {
  mkdirSync(root, { recursive: true });
  const file = join(root, basesFile);
  // Write, then rename: an interrupted run leaves the old file.
  writeFileSync(`${file}.tmp`, `${JSON.stringify({ versions }, null, 1)}\n`);
  renameSync(`${file}.tmp`, file);
}

export function writeLocal(root: string, path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

export function removeLocal(root: string, path: string): void {
  rmSync(join(root, path), { force: true });
}

function sha256Of(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

export interface Remote {
  path: string;
  version: number;
  sha256: string;
}

export type Step =
  /** `expectedVersion` 0: it is new in the store. */
  | { act: "write"; path: string; expectedVersion: number }
  | { act: "remove"; path: string; expectedVersion: number }
  /** Both sides changed, or it is unknown which is newer: nothing is written. */
  | { act: "conflict"; path: string; reason: string };

interface Sides {
  local: ReadonlyMap<string, LocalDocument>;
  bases: Bases;
  remote: ReadonlyMap<string, Remote>;
}

/** The changes that make the store equal to the folder. A missing file removes its document only with `remove`. */
export function planPush(sides: Sides, { remove }: { remove: boolean }): Step[] {
  return pathsOf(sides).flatMap((path): Step[] => {
    const local = sides.local.get(path);
    const base = sides.bases[path];
    const remote = sides.remote.get(path);
    if (local?.sha256 === remote?.sha256) return [];
    if (local === undefined) {
      if (!remove || remote === undefined || base === undefined) return [];
      if (remote.version !== base.version)
        return [
          conflict(path, `is at version ${remote.version} in the store; your removed file was version ${base.version}`),
        ];
      return [{ act: "remove", path, expectedVersion: remote.version }];
    }
    if (remote === undefined) {
      if (base !== undefined) return [conflict(path, "was removed in the store")];
      return [{ act: "write", path, expectedVersion: 0 }];
    }
    if (base?.version === remote.version) return [{ act: "write", path, expectedVersion: remote.version }];
    // Unchanged here, newer in the store: pull it.
    if (base?.sha256 === local.sha256)
      return [
        conflict(
          path,
          `is newer in the store: version ${remote.version}; your file is the unchanged version ${base.version}`,
        ),
      ];
    const yours = base === undefined ? "was never pulled" : `is based on version ${base.version}`;
    return [conflict(path, `is at version ${remote.version} in the store; your file ${yours}`)];
  });
}

/** The changes that make the folder equal to the store; local changes are kept. */
export function planPull(sides: Sides): Step[] {
  return pathsOf(sides).flatMap((path): Step[] => {
    const local = sides.local.get(path);
    const base = sides.bases[path];
    const remote = sides.remote.get(path);
    if (local?.sha256 === remote?.sha256) return [];
    const isOurs = local !== undefined && local.sha256 !== base?.sha256;
    if (remote === undefined) {
      // A file that was never in the store is a new document.
      if (base === undefined) return [];
      return isOurs
        ? [conflict(path, "was removed in the store and changed here")]
        : [{ act: "remove", path, expectedVersion: base.version }];
    }
    // Changed only here: push it.
    if (isOurs && base?.version === remote.version) return [];
    if (isOurs)
      return [conflict(path, `is at version ${remote.version} in the store, and your file has local changes`)];
    return [{ act: "write", path, expectedVersion: remote.version }];
  });
}

function conflict(path: string, reason: string): Step {
  return { act: "conflict", path, reason };
}

function pathsOf({ local, bases, remote }: Sides): string[] {
  return [...new Set([...local.keys(), ...Object.keys(bases), ...remote.keys()])].sort();
}
