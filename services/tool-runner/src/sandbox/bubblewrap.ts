// Builds the bubblewrap command line that sandboxes a command. Pure except for checking which system folders exist.
//
// Inside: a read-only system, the workspace at /workspace, an empty /tmp, only the loopback network, no other processes, no
// capabilities and no way to gain any. When the service runs as root, the user inside keeps uid 0 outside, and the kernel lets that
// uid write /proc/sys without any capability. Therefore /proc/sys is mounted read-only and files that expose the kernel are hidden.
import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { sandboxRoot } from "../workspace/paths.ts";

export interface BubblewrapOptions {
  bwrap: string;
  /** bubblewrap 0.8 and newer: no user namespaces inside. */
  disableUserNamespaces: boolean;
  /** Host path of the workspace. */
  workspace: string;
  /** Nothing in the workspace can be changed. Default: false. */
  readOnly?: boolean;
  /** Working directory inside the sandbox. */
  directory: string;
  /** Folder with the sandbox's `passwd`, `group` and `hosts`. */
  etc: string;
  /** File with the seccomp filter (`seccomp.ts`); undefined: no filter. */
  seccomp: string | undefined;
  env: Record<string, string>;
  /** Variables inherited from bubblewrap's own environment, which must then contain nothing else that is secret. */
  inherited?: readonly string[];
  /** Extra bubblewrap arguments, for example bind mounts. */
  binds?: readonly string[];
  /** Size of /tmp, a tmpfs. */
  temporaryBytes: number;
}

/** The only user inside the sandbox. */
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
/** Variables that the launching shells add to bubblewrap's environment. */
const shellVariables = ["PARLEY_CALL", "PWD", "OLDPWD", "SHLVL", "_"];
const sharedMemoryBytes = 64 * 1024 * 1024;

/** Opens the filter file `$0` on the descriptor that bubblewrap reads, then becomes the command. Fails when the file is missing. */
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
  args.push(options.readOnly === true ? "--ro-bind" : "--bind", options.workspace, sandboxRoot);
  args.push(...(options.binds ?? []));
  args.push("--remount-ro", "/dev", "--remount-ro", "/");
  if (options.disableUserNamespaces) args.push("--disable-userns");
  // Command lines are visible to every user who lists processes.
  if ((options.inherited ?? []).length === 0) args.push("--clearenv");
  else for (const name of shellVariables) args.push("--unsetenv", name);
  for (const [name, value] of Object.entries(options.env)) args.push("--setenv", name, value);
  args.push("--chdir", options.directory, "--");
  return args;
}

/** /bin, /lib and similar are links into /usr on merged systems, and folders elsewhere. */
function systemFolder(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return lstatSync(folder).isSymbolicLink()
    ? ["--symlink", readlinkSync(folder), folder]
    : ["--ro-bind", folder, folder];
}
