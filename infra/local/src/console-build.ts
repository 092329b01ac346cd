// Builds the web console when its sources have changed since the last build.

import { createHash, type Hash } from "node:crypto";
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { errorMessage } from "@parley/contracts";

import { knownSystemError } from "./errors.ts";
import { withLock } from "./lock.ts";
import { run, type LogSink } from "./servers/process.ts";

const repository = fileURLToPath(new URL("../../../", import.meta.url));
/** In a built folder: the hash of the sources that it was built from. */
export const markerName = ".sources";
const sources = ["src/**/*.{ts,tsx,css,svg}", "build/*", "index.html", "vite.config.ts", "package.json"];
/** Files of the repository that the documentation is made of. */
const documents = ["docs/**/*.{md,png}", "infra/docs-site/.vitepress/config.mjs", "SECURITY.md"];

/** Builds if necessary. A failed build is reported by `print`: the cluster works without the console. Never rejects. */
export async function ensureConsole(print: LogSink, root = repository): Promise<void> {
  try {
    await build(print, root);
  } catch (error) {
    const reason = knownSystemError(error, root)?.message ?? errorMessage(error);
    print(`console: cannot be built; the API works without it. ${reason}`);
  }
}

async function build(print: LogSink, root: string): Promise<void> {
  const folder = join(root, "packages/console");
  const built = join(folder, "dist");
  removeOutdatedSite(print, root);
  const wanted = sourceHash(root, folder);
  if (isBuilt(built, wanted)) return;
  await withLock(join(root, ".parley", "console-build.lock"), async () => {
    if (isBuilt(built, wanted)) return;
    print("console: building");
    const fresh = join(folder, `dist.${process.pid}`);
    const vite = join(folder, "node_modules/vite/bin/vite.js");
    const args = [vite, "build", "--outDir", fresh, "--emptyOutDir", "--logLevel", "warn"];
    const outcome = await run(process.execPath, args, { cwd: folder, env: process.env });
    if (outcome.code !== 0) {
      rmSync(fresh, { recursive: true, force: true });
      print(`console: the build failed; the API works without it\n${outcome.stdout}${outcome.stderr}`.trimEnd());
      return;
    }
    writeFileSync(join(fresh, markerName), wanted);
    rmSync(built, { recursive: true, force: true });
    renameSync(fresh, built);
  });
}

/** The gateway prefers the site of `npm run docs` to the pages of this build, which are current. */
function removeOutdatedSite(print: LogSink, root: string): void {
  const site = join(root, "packages/console/docs-dist");
  if (!existsSync(site) || isBuilt(site, documentsHash(root))) return;
  rmSync(site, { recursive: true, force: true });
  print("documentation: removed the site, which was older than docs/; `npm run docs` builds it again");
}

/** The hash of the pages of the documentation and of what its site is configured with. */
export function documentsHash(root = repository): string {
  const hash = createHash("sha256");
  addFiles(hash, root, documents);
  return hash.digest("hex");
}

function isBuilt(built: string, wanted: string): boolean {
  const marker = join(built, markerName);
  return existsSync(marker) && readFileSync(marker, "utf8") === wanted;
}

function sourceHash(root: string, folder: string): string {
  const hash = createHash("sha256").update(readFileSync(join(root, "pnpm-lock.yaml")));
  addFiles(hash, folder, sources);
  addFiles(hash, root, documents);
  return hash.digest("hex");
}

function addFiles(hash: Hash, folder: string, patterns: readonly string[]): void {
  for (const path of globSync(patterns, { cwd: folder }).toSorted()) {
    hash.update(`\0${path}\0`).update(readFileSync(join(folder, path)));
  }
}
