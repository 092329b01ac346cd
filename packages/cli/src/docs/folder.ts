// A local folder with documents as files, and a record of each file's base version.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { errorMessage, documentFolders, documentPathProblem, rootDocuments } from "@parley/contracts";
import { z } from "zod";

import { CliError } from "../errors.ts";

const memoryFile = ".parley-docs.json";
const Memory = z.object({
  versions: z.record(z.string(), z.object({ version: z.number().int(), sha256: z.string() })),
});

/** The version that a file was made from, by path. */
export type Bases = Readonly<Record<string, { version: number; sha256: string }>>;

export interface LocalDocument {
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

/** Possible document files: certain names in the folder itself, and all files that are not hidden below memory/ and skills/. */
function candidates(root: string): string[] {
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
  const files = [...rootDocuments.filter((name) => existsSync(join(root, name))), ...below];
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
  const file = join(root, memoryFile);
  if (!existsSync(file)) return {};
  try {
    return Memory.parse(JSON.parse(readFileSync(file, "utf8"))).versions;
  } catch (error) {
    throw new CliError(`${file} cannot be read: ${errorMessage(error)}`, {
      fix: "Remove it: every file is then compared with the store again.",
    });
  }
}

export function writeBases(root: string, versions: Bases): void {
  mkdirSync(root, { recursive: true });
  const file = join(root, memoryFile);
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
