// The folders with the shared libraries of an unpacked Debian package.
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";

/** Their paths, joined for LD_LIBRARY_PATH; `first` precedes them. */
export function libraryPath(root: string, first: readonly string[] = []): string {
  const files = readdirSync(join(root, "usr/lib"), { recursive: true, encoding: "utf8" });
  const folders = files
    .filter((name) => /\.so(\.\d+)*$/.test(name))
    .map((name) => dirname(join(root, "usr/lib", name)));
  return [...first, ...new Set(folders)].join(":");
}
