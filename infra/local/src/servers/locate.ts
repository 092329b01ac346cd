// Finds a server's binary, and bubblewrap: on PATH, else in the unpacked Debian package. Otherwise an error names the package to install.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

import { errorMessage } from "@parley/contracts";

import { isDiskFull, LocalError } from "../errors.ts";
import { debianBinary, hasApt } from "./debian.ts";
import { type LogSink, run } from "./process.ts";

/** The folder of unpacked packages that all tests share. `npm start` has its own under its home. */
export const sharedCacheDir = fileURLToPath(new URL("../../../../.parley/servers", import.meta.url));

interface Known {
  readonly commands: readonly string[];
  readonly packageName: string;
  /** Oldest supported version, major and minor. */
  readonly oldest: readonly [number, number];
  readonly version: RegExp;
  readonly brew: string;
}

const knownServers = {
  redis: {
    commands: ["redis-server", "valkey-server"],
    packageName: "redis-server",
    oldest: [6, 2],
    version: /v=(\d+)\.(\d+)/,
    brew: "redis",
  },
  nats: {
    commands: ["nats-server"],
    packageName: "nats-server",
    oldest: [2, 9],
    version: /v(\d+)\.(\d+)/,
    brew: "nats-server",
  },
} as const satisfies Record<string, Known>;

const found = new Map<string, Promise<string>>();

/** The path of a server's binary of a supported version. The result is cached per process and cache folder. */
export async function findServer(
  what: keyof typeof knownServers,
  cacheDir = sharedCacheDir,
  log?: (line: string) => void,
): Promise<string> {
  const key = `${what} ${cacheDir}`;
  let search = found.get(key);
  if (search === undefined) {
    search = locate(knownServers[what], cacheDir, log);
    found.set(key, search);
    search.catch(() => found.delete(key));
  }
  return search;
}

async function locate(known: Known, cacheDir: string, log?: (line: string) => void): Promise<string> {
  for (const command of known.commands) {
    const path = onPath(command);
    if (path !== null && (await newEnough(path, known))) return path;
  }
  const [command = known.packageName] = known.commands;
  if (!(await hasApt()))
    throw missingError([known, ...Object.values(knownServers).filter((each) => each !== known && !isOnPath(each))]);
  return (await debianBinary(command, known.packageName, cacheDir, log)).path;
}

function isOnPath({ commands }: Known): boolean {
  return commands.some((command) => onPath(command) !== null);
}

/** The servers that neither PATH nor apt can provide on this machine, as one error; null if nothing is missing. */
export async function missingServers(): Promise<LocalError | null> {
  const missing = Object.values(knownServers).filter((known) => !isOnPath(known));
  return missing.length === 0 || (await hasApt()) ? null : missingError(missing);
}

/** Commands that install packages, in the order in which they are looked for. */
const packageManagers = {
  brew: "brew install",
  dnf: "sudo dnf install",
  pacman: "sudo pacman -S",
  apk: "sudo apk add",
  zypper: "sudo zypper install",
} as const;
type PackageManager = keyof typeof packageManagers;

function missingError(missing: readonly Known[]): LocalError {
  const { message, fix } = missingText(missing, foundManager());
  return new LocalError("binary_missing", message, { fix });
}

function foundManager(): PackageManager | null {
  const managers = Object.keys(packageManagers) as PackageManager[];
  return managers.find((name) => onPath(name) !== null) ?? null;
}

/** What is missing and the command that installs it; other package managers use the names of Homebrew. `manager` null: none is known. Pure. */
export function missingText(
  missing: readonly Pick<Known, "commands" | "oldest" | "brew">[],
  manager: PackageManager | null,
): { message: string; fix: string } {
  const names = missing
    .map(({ commands, oldest }) => `${commands[0] ?? ""} ${oldest.join(".")} or newer`)
    .join(" and ");
  const verb = missing.length > 1 ? "are" : "is";
  const packages = missing.map(({ brew }) => brew);
  const install =
    manager === null
      ? `Install ${packages.join(" and ")} with your package manager`
      : `Run: ${packageManagers[manager]} ${packages.join(" ")}`;
  return {
    message: `${names} ${verb} not installed, and there is no apt to download from.`,
    fix: `${install}. Or run everything in containers: docker compose up`,
  };
}

/** The executable with this name on PATH or in the sbin folders, which an ordinary user's PATH omits; null if not found. */
export function onPath(command: string): string | null {
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  for (const folder of folders) {
    if (folder === "") continue;
    const path = join(folder, command);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      continue;
    }
  }
  return null;
}

async function newEnough(path: string, { version, oldest: [major, minor] }: Known): Promise<boolean> {
  const [, itsMajor, itsMinor] = version.exec((await run(path, ["--version"])).stdout) ?? [];
  return Number(itsMajor) > major || (Number(itsMajor) === major && Number(itsMinor) >= minor);
}

/** The path of bubblewrap; null if it is not available. The cluster then runs without it, and `exec` reports its isolation. */
export async function findBubblewrap(serversDir: string, print: LogSink): Promise<string | null> {
  const installed = onPath("bwrap");
  if (installed !== null || process.platform !== "linux") return installed;
  try {
    if (await hasApt()) return (await debianBinary("bwrap", "bubblewrap", serversDir, print)).path;
  } catch (error) {
    print(missingBubblewrap(error, serversDir));
    return null;
  }
  const manager = foundManager();
  print(missingBubblewrap(undefined, serversDir, manager === null ? null : packageManagers[manager]));
  return null;
}

/** What to tell when bubblewrap cannot be used, by the error of unpacking it. `manager`: the command that installs packages, if known. Pure. */
export function missingBubblewrap(error: unknown, serversDir: string, manager: string | null = "apt install"): string {
  const isFull =
    isDiskFull(error) || /no space left|quota exceeded/i.test(error === undefined ? "" : errorMessage(error));
  if (isFull)
    return `The disk of ${serversDir} is full: bubblewrap cannot be unpacked, and \`exec\` has no sandbox. Free some space.`;
  const install = manager === null ? "your package manager" : `\`${manager} bubblewrap\``;
  return `bubblewrap not found: \`exec\` has no sandbox. Install it with ${install}.`;
}
