// Mail servers refuse to deliver as root, so under root they run as the user `nobody`. A server with a compiled-in user finds it although
// the machine has none: a preloaded library answers its look-ups from files.
import { execFileSync } from "node:child_process";
import { chownSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debianLibrary, sharedCacheDir } from "@parley/local";
import { withParentDeathSignal } from "../parent-death-signal.ts";

/** The user `nobody` on every Linux. */
const nobody = 65_534;
const asRoot = process.getuid?.() === 0;
/** The user of the servers. */
export const serverUid = asRoot ? nobody : (process.getuid?.() ?? nobody);
export const serverGid = asRoot ? nobody : (process.getgid?.() ?? nobody);

/** The names of that user and group on this machine. */
export function serverNames(): { user: string; group: string } {
  const name = (option: string) => execFileSync("id", [option, String(serverUid)], { encoding: "utf8" }).trim();
  return { user: name("-un"), group: name("-gn") };
}

/** Variables with which a program finds that user under the name `user`; `folder` receives the files. */
export async function userVariables(folder: string, user: string): Promise<Record<string, string>> {
  const [passwd, group] = [join(folder, "passwd"), join(folder, "group")];
  writeFileSync(passwd, `${user}:x:${serverUid}:${serverGid}::${folder}:/bin/false\n`);
  writeFileSync(group, `${user}:x:${serverGid}:\n`);
  const library = await debianLibrary("libnss_wrapper.so", "libnss-wrapper", sharedCacheDir);
  return { LD_PRELOAD: library, NSS_WRAPPER_PASSWD: passwd, NSS_WRAPPER_GROUP: group };
}

/** The command and its arguments, run as the servers' user; it ends with the test. */
export function asServerUser(command: string, args: readonly string[]): [string, string[]] {
  const [wrapper, wrapped] = withParentDeathSignal(command, args);
  if (!asRoot) return [wrapper, wrapped];
  const user = ["--reuid", String(serverUid), "--regid", String(serverGid), "--clear-groups"];
  return [wrapper, [...user, ...wrapped]];
}

/** Gives a folder and everything in it to the servers' user. */
export function giveToServerUser(folder: string): void {
  if (!asRoot) return;
  const inside = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  for (const path of [folder, ...inside]) {
    try {
      chownSync(path, serverUid, serverGid);
    } catch (error) {
      // A server that runs already removes its locks.
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    }
  }
}
