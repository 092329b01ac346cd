// Python of Debian sid with Synapse and matrix-nio, unpacked and not installed.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { sharedCacheDir, suitePackages, suitePrograms } from "@parley/local";

export interface Python {
  /** The version of Debian's package of Synapse. */
  version: string;
  /** The command that runs Python; `writable` are folders of this machine. */
  command(args: readonly string[], writable?: readonly string[]): [string, string[]];
}

/** The first call downloads the packages. */
export async function synapsePython(): Promise<Python> {
  const debian = await suitePrograms({ name: "synapse", ...suitePackages.synapse, cacheDir: sharedCacheDir });
  // No installation has compiled the modules. Without this folder every start would compile them again, which takes half of its time.
  const compiled = join(sharedCacheDir, "synapse-compiled");
  mkdirSync(compiled, { recursive: true });
  return {
    version: debian.version("matrix-synapse") ?? "unknown",
    command: (args, writable = []) =>
      debian.command("python3", ["-X", `pycache_prefix=${compiled}`, ...args], { writable: [...writable, compiled] }),
  };
}
