// Finds or downloads bubblewrap, the sandbox of the tool `exec`.

import { debianBinary, hasApt } from "./debian.ts";
import { onPath } from "./locate.ts";
import type { LogSink } from "./process.ts";

/** The path of bubblewrap; null if it is not available. The cluster then runs without it, and `exec` reports its isolation. */
export async function findBubblewrap(serversDir: string, say: LogSink): Promise<string | null> {
  const installed = onPath("bwrap");
  if (installed !== null || process.platform !== "linux") return installed;
  try {
    if (await hasApt()) return (await debianBinary("bwrap", "bubblewrap", serversDir, say)).path;
  } catch {
    // Reported below.
  }
  say("bubblewrap not found: `exec` has no sandbox. Install it with `apt install bubblewrap`.");
  return null;
}
