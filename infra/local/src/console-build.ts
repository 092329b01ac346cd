// Builds the web console when its sources have changed since the last build.

import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { withLock } from "./lock.ts";
import { run, type LogSink } from "./servers/process.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const folder = join(root, "packages/console");
const built = join(folder, "dist");
/** In the built folder: the hash of the sources that it was built from. */
const markerName = ".sources";
const sources = ["src/**/*.{ts,tsx,css,svg}", "index.html", "vite.config.ts", "package.json"];

/** Builds if necessary. A failed build is reported by `say`: the cluster works without the console. */
export async function ensureConsole(say: LogSink): Promise<void> {
  const wanted = sourceHash();
  if (isBuilt(wanted)) return;
  await withLock(join(root, ".parley", "console-build.lock"), async () => {
    if (isBuilt(wanted)) return;
    say("console: building");
    const fresh = join(folder, `dist.${process.pid}`);
    const vite = join(folder, "node_modules/vite/bin/vite.js");
    const args = [vite, "build", "--outDir", fresh, "--emptyOutDir", "--logLevel", "warn"];
    const outcome = await run(process.execPath, args, { cwd: folder, env: process.env });
    if (outcome.code !== 0) {
      rmSync(fresh, { recursive: true, force: true });
      say(`console: the build failed; the API works without it\n${outcome.stdout}${outcome.stderr}`.trimEnd());
      return;
    }
    writeFileSync(join(fresh, markerName), wanted);
    rmSync(built, { recursive: true, force: true });
    renameSync(fresh, built);
  });
}

function isBuilt(wanted: string): boolean {
  const marker = join(built, markerName);
  return existsSync(marker) && readFileSync(marker, "utf8") === wanted;
}

function sourceHash(): string {
  const hash = createHash("sha256").update(readFileSync(join(root, "pnpm-lock.yaml")));
  for (const path of globSync(sources, { cwd: folder }).toSorted()) {
    hash.update(`\0${path}\0`).update(readFileSync(join(folder, path)));
  }
  return hash.digest("hex");
}
