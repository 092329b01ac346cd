// `npm run docs:site`, the second half of `npm run docs`: builds the documentation site from docs/ into packages/console/docs-dist, where the gateway serves it below /docs/.
// The libraries of the site are installed here, so that `npm start` and `npm test` do not need them.
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { documentsHash, markerName } from "../local/src/console-build.ts";

const root = resolve(import.meta.dirname, "../..");
const site = join(root, "infra/docs-site");
const pages = join(site, "pages");
const built = join(root, "packages/console/docs-dist");
/** Complete before it is at its place: a start removes a site without a current marker. */
const fresh = join(site, "dist");

const { config } = z
  .object({ config: z.object({ pnpm: z.string() }) })
  .parse(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));

function run(command: string, args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, {
    cwd: site,
    stdio: "inherit",
    env: { ...process.env, CI: "true" },
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed with exit code ${status}`);
}

run("npx", ["--yes", `pnpm@${config.pnpm}`, "install", "--frozen-lockfile"]);
rmSync(pages, { recursive: true, force: true });
const hash = documentsHash();
cpSync(join(root, "docs"), pages, { recursive: true });
const security = readFileSync(join(root, "SECURITY.md"), "utf8");
writeFileSync(join(pages, "security.md"), security.replaceAll("](docs/", "]("));
// The home page of the site: its scripts show "not found" for an address without a page of its own.
const first = readFileSync(join(pages, "getting-started.md"), "utf8");
writeFileSync(join(pages, "index.md"), `---\nsearch: false\n---\n\n${first}`);
try {
  run(process.execPath, [join(site, "node_modules/vitepress/bin/vitepress.js"), "build", ".", "--outDir", fresh]);
} finally {
  rmSync(pages, { recursive: true, force: true });
}
writeFileSync(join(fresh, markerName), hash);
rmSync(built, { recursive: true, force: true });
renameSync(fresh, built);
console.log(`built ${built}; a gateway that is started now serves it at /docs/`);
