// Writes the /etc files that sandboxed programs need, and the seccomp filter. One folder serves all replicas of this user. It is
// outside the workspace: a command that could change these files could redirect the next sandbox to any host file.
import { randomBytes } from "node:crypto";
import { lstat, mkdir, mkdtemp, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sandboxRoot } from "../workspace/paths.ts";
import { sandboxUser } from "./bubblewrap.ts";
import { seccompFilter } from "./seccomp.ts";

const filterName = "seccomp.bpf";

export interface SandboxEtc {
  /** Folder with the sandbox's `passwd`, `group` and `hosts`. */
  etc: string;
  /** File with the seccomp filter; undefined on a processor that has none. */
  seccomp: string | undefined;
}

/** Writes the files and returns their paths. */
export async function writeEtcFiles(): Promise<SandboxEtc> {
  const folder = await ownFolder();
  const { name, uid, gid } = sandboxUser;
  await replaceFile(folder, "passwd", `${name}:x:${uid}:${gid}:${name}:${sandboxRoot}:/bin/sh\n`);
  await replaceFile(folder, "group", `${name}:x:${gid}:\n`);
  await replaceFile(folder, "hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n");
  const filter = seccompFilter();
  if (filter === undefined) return { etc: folder, seccomp: undefined };
  await replaceFile(folder, filterName, filter);
  return { etc: folder, seccomp: join(folder, filterName) };
}

/** The same folder at every start, so that killed services leave nothing over; a new one when another user owns the name. */
async function ownFolder(): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  const folder = join(tmpdir(), `parley-etc-${uid}`);
  await mkdir(folder, { mode: 0o700 }).catch(() => undefined);
  const stats = await lstat(folder).catch(() => undefined);
  const ours = stats !== undefined && stats.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0;
  return ours ? folder : mkdtemp(`${folder}-`);
}

async function replaceFile(folder: string, name: string, content: string | Uint8Array): Promise<void> {
  const draft = join(folder, `.${name}-${randomBytes(6).toString("hex")}`);
  await writeFile(draft, content, { flag: "wx", mode: 0o644 });
  await rename(draft, join(folder, name));
}
