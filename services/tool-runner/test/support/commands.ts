// Where bubblewrap is on this machine, and what commands still run on it.
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { debianBinary, hasApt, onPath, SHARED_CACHE_DIR } from "@parley/local";

/** The bubblewrap program: installed, or unpacked from Debian's package; undefined where neither works. */
export const bwrap: string | undefined = await findBubblewrap();

async function findBubblewrap(): Promise<string | undefined> {
  const installed = onPath("bwrap");
  if (installed !== null) return installed;
  return (await hasApt()) ? (await debianBinary("bwrap", "bubblewrap", SHARED_CACHE_DIR)).path : undefined;
}

/** A command line that no other test, of this run or another one, looks for among the machine's processes. */
export function sleeper(): string {
  return `sleep ${randomInt(1e9, 1e10)}`;
}

/** Processes of this machine whose command line begins with a text. */
export function running(text: string): string[] {
  return found(text, () => true);
}

/** Those of them that are not killed already: the others do nothing any more, and are gone when a processor has time for that. */
export function alive(text: string): string[] {
  return found(text, (pid) => !isKilled(readFileSync(`/proc/${pid}/status`, "utf8")));
}

function found(text: string, counts: (pid: string) => boolean): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return line.startsWith(text) && counts(pid) ? [line] : [];
    } catch {
      return [];
    }
  });
}

/** SIGKILL is the ninth signal of the mask. */
function isKilled(status: string): boolean {
  const pending = /^SigPnd:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return (BigInt(`0x${pending}`) & 0x100n) !== 0n;
}
