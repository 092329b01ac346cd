// Files that a message names with `@path`: they are attached. The text stays as typed.

import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { resolve } from "node:path";

const mention = /(?:^|\s)@(?:"([^"\n]+)"|([^\s"]+))/g;

/** The names after `@`, without duplicates. Pure. */
export function mentionsIn(text: string): string[] {
  return [...new Set([...text.matchAll(mention)].map(([, quoted, plain]) => quoted ?? plain ?? ""))];
}

/** Those names that are files, relative to the folder. Other names stay words of the message: `@team`. */
export async function mentionedFiles(text: string, folder: string): Promise<string[]> {
  const found = await Promise.all(mentionsIn(text).map((name) => fileNamed(name, folder)));
  return [...new Set(found.filter((path) => path !== null))];
}

async function fileNamed(name: string, folder: string): Promise<string | null> {
  // A sentence may end after the name.
  for (const candidate of new Set([name, name.replace(/[.,;:!?)]+$/, "")])) {
    const path = resolve(folder, candidate.replace(/^~(?=\/)/, homedir()));
    const isFile = await stat(path).then(
      (found) => found.isFile(),
      () => false,
    );
    if (isFile) return path;
  }
  return null;
}
