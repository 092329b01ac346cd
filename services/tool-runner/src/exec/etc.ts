// The few files of /etc that programs ask for behind the wall, and the filter that stands with it. They lie in one folder for all replicas of this user, outside
// the workspace: a command that could change them could point the next wall at any file of the machine.
import { randomBytes } from "node:crypto";
import { lstat, mkdir, mkdtemp, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sandboxRoot } from "../workspace/paths.ts";
import { sandboxUser } from "./bubblewrap.ts";
import { seccompFilter } from "./seccomp.ts";

/** The filter's name in the folder. */
const filterName = "seccomp.bpf";

export interface WallFiles {
  /** A folder with `passwd`, `group` and `hosts` for the inside. */
  etc: string;
  /** The file with the kernel's filter; undefined: none for this processor. */
  seccomp: string | undefined;
}

/** Writes them; answers with where they are. */
export async function writeEtc(): Promise<WallFiles> {
  const folder = await ownFolder();
  const { name, uid, gid } = sandboxUser;
  await put(folder, "passwd", `${name}:x:${uid}:${gid}:${name}:${sandboxRoot}:/bin/sh\n`);
  await put(folder, "group", `${name}:x:${gid}:\n`);
  await put(folder, "hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n");
  const filter = seccompFilter();
  if (filter === undefined) return { etc: folder, seccomp: undefined };
  await put(folder, filterName, filter);
  return { etc: folder, seccomp: join(folder, filterName) };
}

/** The same at every start, so that killed services leave nothing behind; another one where somebody else took the name. */
async function ownFolder(): Promise<string> {
  const uid = process.getuid?.() ?? 0;
  const folder = join(tmpdir(), `parley-etc-${uid}`);
  await mkdir(folder, { mode: 0o700 }).catch(() => undefined);
  const stats = await lstat(folder).catch(() => undefined);
  const ours = stats !== undefined && stats.isDirectory() && stats.uid === uid && (stats.mode & 0o077) === 0;
  return ours ? folder : mkdtemp(`${folder}-`);
}

async function put(folder: string, name: string, content: string | Uint8Array): Promise<void> {
  const draft = join(folder, `.${name}-${randomBytes(6).toString("hex")}`);
  await writeFile(draft, content, { flag: "wx", mode: 0o644 });
  await rename(draft, join(folder, name));
}
