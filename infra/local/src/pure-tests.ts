// Finds pure test files and bundles those of a package into one process: a small test file spends most of its time on starting the
// process and loading the same modules.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** Modules that can start a server, a process or a worker. */
const STARTS =
  /^(node:(child_process|cluster|dgram|http|http2|https|net|tls|worker_threads)|@parley\/(bus|local|testing))$/;
/** Process state that a pure test file must not change. */
const GLOBAL_STATE =
  /\bprocess\.(env|on|once|exit|exitCode|chdir|umask|kill)\b|\bglobalThis\b|\bmock\.|import\.meta\.main/;
/** Hooks and mocks of one file would apply to every file of the process. */
const HOOKS = /^import \{[^}]*\b(after|before|afterEach|beforeEach|mock)\b[^}]*\} from "node:test"/m;
const IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^"';]*?\bfrom\s+)?"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)/gm;
const WORKER = /new URL\("[^"]+\.ts", import\.meta\.url\)/;

/**
 * True if neither the test file nor its relative imports (except types) can start a server, process or worker, and the files in `test`
 * folders change no process state. `path`: absolute.
 */
function isPureTest(path: string): boolean {
  return isPure(path, new Set());
}

function isPure(path: string, seen: Set<string>): boolean {
  if (seen.has(path)) return true;
  seen.add(path);
  const text = readFileSync(path, "utf8");
  if (WORKER.test(text)) return false;
  if (/\/test\//.test(path) && (GLOBAL_STATE.test(text) || HOOKS.test(text))) return false;
  return [...text.matchAll(IMPORT)].every(([, from, dynamic]) => {
    const specifier = from ?? dynamic ?? "";
    if (!specifier.startsWith(".")) return !STARTS.test(specifier);
    const file = resolve(dirname(path), specifier);
    return !file.endsWith(".ts") || !existsSync(file) || isPure(file, seen);
  });
}

/**
 * Writes one file per package into `folder` that imports the pure ones among `files` (absolute paths). Returns the files to run: the
 * bundles and all other files.
 */
export function bundlePureTests(files: readonly string[], root: string, folder: string): string[] {
  const packages = Map.groupBy(
    files.filter(isPureTest),
    (file) => /^(test|\w+\/[^/]+)\//.exec(file.slice(root.length))?.[1],
  );
  const bundles = [...packages].map(([name = "other", pure]) => {
    const bundle = join(folder, `pure-${name.replace("/", "-")}.test.mjs`);
    writeFileSync(bundle, pure.map((file) => `import ${JSON.stringify(pathToFileURL(file).href)};\n`).join(""));
    return bundle;
  });
  const bundled = new Set([...packages.values()].flat());
  return [...bundles, ...files.filter((file) => !bundled.has(file))];
}
