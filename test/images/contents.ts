// Whether two builds of one tree contain the same: every file of an image by path, owner, mode and content.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Engine } from "./engine.ts";

/** A line for each file, folder and link; the times of files are not compared. */
const listing = `cd / && find . -xdev \\( -path ./proc -o -path ./sys -o -path ./dev \\) -prune -o -printf '%p %y %m %U:%G %l\\n' | sort
find . -xdev -type f -exec sha256sum {} + | sort -k 2`;

/** Files that the engine writes into each container. */
const ofContainer = /^\.\/(?:\.dockerenv|etc\/(?:hosts|hostname|resolv\.conf|mtab))$/;

/** The entries of an image by path. */
export async function contentsOf({ docker }: Engine, image: string): Promise<Map<string, string>> {
  const shell = ["run", "--rm", "--user", "0", "--network", "none", "--entrypoint", "sh", image, "-c", listing];
  return entriesIn(await docker(...shell));
}

/** The entries in the output of the listing: what the entry is, and for a file the hash of its content. Pure. */
export function entriesIn(output: string): Map<string, string> {
  const entries = new Map<string, string>();
  for (const line of output.split("\n")) {
    const [, hash, hashed] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? [];
    const [, path, rest] = /^(\..*?) ([a-z] [0-7]+ \d+:\d+ .*)$/.exec(line) ?? [];
    const name = hashed ?? path;
    if (name === undefined || ofContainer.test(name)) continue;
    entries.set(name, `${entries.get(name) ?? ""}${hash ?? rest ?? ""} `);
  }
  return entries;
}

/** The paths that only one of them has, or that differ. Pure. */
export function differences(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): string[] {
  return [...new Set([...one.keys(), ...other.keys()])].filter((path) => one.get(path) !== other.get(path)).sort();
}

/**
 * Copies the tracked files to another folder, with a file that no image contains: its build uses no cached step after the copy of the sources, so
 * everything is compiled and deployed again.
 */
export function copySources(root: string, folder: string): void {
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
  for (const file of files.split("\0")) {
    // A deleted file is listed until it is committed.
    if (file === "" || !existsSync(join(root, file))) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    copyFileSync(join(root, file), join(folder, file));
  }
  writeFileSync(join(folder, "infra/built-again"), folder);
}
