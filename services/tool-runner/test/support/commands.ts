// Finds bubblewrap on this machine, and commands that are still running.
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { debianBinary, hasApt, onPath, sharedCacheDir } from "@parley/local";

/** Path of bubblewrap: installed, or unpacked from Debian's package; undefined when neither works. */
export const bwrap: string | undefined = await findBubblewrap();

async function findBubblewrap(): Promise<string | undefined> {
  const installed = onPath("bwrap");
  if (installed !== null) return installed;
  return (await hasApt()) ? (await debianBinary("bwrap", "bubblewrap", sharedCacheDir)).path : undefined;
}

/** A command line that is unique among all test runs on this machine. */
export function sleeper(): string {
  return `sleep ${randomInt(1e9, 1e10)}`;
}

/** Processes whose command line starts with a text. */
export function running(text: string): string[] {
  return found(text, () => true);
}

/** Like `running`, without processes that are already killed but not yet gone. */
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
