// The sandbox of the tool `exec`, where this machine can have it.

import { debianBinary, hasApt } from "./debian.ts";
import { onPath } from "./locate.ts";
import type { LogSink } from "./process.ts";

/** The sandbox of `exec`. Without it the cluster runs all the same, and `exec` says what isolation there is. */
export async function findBubblewrap(serversDir: string, say: LogSink): Promise<string | null> {
  const installed = onPath("bwrap");
  if (installed !== null || process.platform !== "linux") return installed;
  try {
    if (await hasApt()) return (await debianBinary("bwrap", "bubblewrap", serversDir, say)).path;
  } catch {
    // Said below.
  }
  say("bubblewrap is not here: `exec` has no sandbox of its own (apt install bubblewrap)");
  return null;
}
