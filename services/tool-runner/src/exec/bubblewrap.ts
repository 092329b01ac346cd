// The command line that puts a command behind bubblewrap's wall. Pure but for looking at which system folders exist.
//
// Inside: a read-only system, the workspace at /workspace, an empty /tmp, no network but loopback, no other processes, no capabilities,
// no way to gain any. When the service runs as root, the user inside is still root's number outside, and the kernel lets that
// number write /proc/sys without any capability: therefore /proc/sys is mounted read-only and what tells about the kernel is
// covered.
import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { sandboxRoot } from "../workspace/paths.ts";

export interface BubblewrapOptions {
  bwrap: string;
  /** bubblewrap 0.8 and newer: no user namespaces inside. */
  disableUserNamespaces: boolean;
  /** The workspace on the machine. */
  workspace: string;
  /** Working directory inside. */
  directory: string;
  /** A folder with `passwd`, `group` and `hosts` for the inside. */
  etc: string;
  /** The file with the kernel's filter (`seccomp.ts`); undefined: none. */
  seccomp: string | undefined;
  env: Record<string, string>;
  /** Names of what is taken from bubblewrap's own environment, which then holds nothing that the inside must not have. */
  inherited?: readonly string[];
  /** More that is to be seen inside, as arguments of bubblewrap. */
  binds?: readonly string[];
  /** Size of /tmp, which lives in memory. */
  temporaryBytes: number;
}

/** The user inside; there is no other. */
export const sandboxUser = { name: "agent", uid: 1000, gid: 1000 } as const;

const systemFolders = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
const systemFiles = [
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
  "/etc/mime.types",
  "/etc/nsswitch.conf",
  "/etc/ssl/certs",
  "/nix/store",
];
const readOnlyProc = ["/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/pressure"];
const hiddenProcFiles = [
  "config.gz",
  "iomem",
  "ioports",
  "kallsyms",
  "kcore",
  "key-users",
  "keys",
  "kmsg",
  "kpagecgroup",
  "kpagecount",
  "kpageflags",
  "latency_stats",
  "mtrr",
  "sched_debug",
  "slabinfo",
  "sysrq-trigger",
  "timer_list",
  "timer_stats",
  "vmallocinfo",
].map((name) => `/proc/${name}`);
const hiddenProcFolders = ["/proc/acpi", "/proc/asound", "/proc/driver", "/proc/scsi"];
/** What the way to bubblewrap leaves in its environment. */
const shellVariables = ["PARLEY_CALL", "PWD", "OLDPWD", "SHLVL", "_"];
const sharedMemoryBytes = 64 * 1024 * 1024;

/** Opens the filter `$0` where bubblewrap reads it, and becomes the command. A file that is missing ends it. */
const withFilter = 'exec 9<"$0" && exec "$@"';

export function bubblewrapArguments(options: BubblewrapOptions): string[] {
  const args = [
    ...(options.seccomp === undefined ? [] : ["/bin/sh", "-c", withFilter, options.seccomp]),
    options.bwrap,
    ...(options.seccomp === undefined ? [] : ["--seccomp", "9"]),
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
  ];
  args.push("--uid", String(sandboxUser.uid), "--gid", String(sandboxUser.gid), "--hostname", "sandbox");
  args.push("--ro-bind", "/usr", "/usr");
  for (const folder of systemFolders) args.push(...systemFolder(folder));
  for (const file of systemFiles) args.push("--ro-bind-try", file, file);
  for (const name of ["passwd", "group", "hosts"]) args.push("--ro-bind", `${options.etc}/${name}`, `/etc/${name}`);
  args.push("--proc", "/proc");
  for (const path of readOnlyProc) if (existsSync(path)) args.push("--ro-bind", path, path);
  for (const path of hiddenProcFiles) if (existsSync(path)) args.push("--ro-bind", "/dev/null", path);
  for (const path of hiddenProcFolders) if (existsSync(path)) args.push("--tmpfs", path, "--remount-ro", path);
  args.push("--dev", "/dev");
  args.push("--size", String(sharedMemoryBytes), "--tmpfs", "/dev/shm");
  args.push("--size", String(options.temporaryBytes), "--tmpfs", "/tmp");
  args.push("--bind", options.workspace, sandboxRoot);
  args.push(...(options.binds ?? []));
  args.push("--remount-ro", "/dev", "--remount-ro", "/");
  if (options.disableUserNamespaces) args.push("--disable-userns");
  // A value on the command line would be seen by whoever lists the machine's processes.
  if ((options.inherited ?? []).length === 0) args.push("--clearenv");
  else for (const name of shellVariables) args.push("--unsetenv", name);
  for (const [name, value] of Object.entries(options.env)) args.push("--setenv", name, value);
  args.push("--chdir", options.directory, "--");
  return args;
}

/** /bin and its like are links into /usr on merged systems, folders elsewhere. */
function systemFolder(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return lstatSync(folder).isSymbolicLink()
    ? ["--symlink", readlinkSync(folder), folder]
    : ["--ro-bind", folder, folder];
}
