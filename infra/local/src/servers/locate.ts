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

interface ServerPackage {
  readonly commands: readonly string[];
  readonly packageName: string;
  /** Oldest supported version, major and minor. */
  readonly minVersion: readonly [number, number];
  readonly version: RegExp;
  readonly brewName: string;
}

const knownServers = {
  redis: {
    commands: ["redis-server", "valkey-server"],
    packageName: "redis-server",
    minVersion: [6, 2],
    version: /v=(\d+)\.(\d+)/,
    brewName: "redis",
  },
  nats: {
    commands: ["nats-server"],
    packageName: "nats-server",
    minVersion: [2, 9],
    version: /v(\d+)\.(\d+)/,
    brewName: "nats-server",
  },
} as const satisfies Record<string, ServerPackage>;

const searches = new Map<string, Promise<string>>();

/** The path of a server's binary of a supported version. The result is cached per process and cache folder. */
export async function findServer(
  server: keyof typeof knownServers,
  cacheDir = sharedCacheDir,
  log?: (line: string) => void,
): Promise<string> {
  const key = `${server} ${cacheDir}`;
  let search = searches.get(key);
  if (search === undefined) {
    search = locate(knownServers[server], cacheDir, log);
    searches.set(key, search);
    search.catch(() => searches.delete(key));
  }
  return search;
}

async function locate(known: ServerPackage, cacheDir: string, log?: (line: string) => void): Promise<string> {
  for (const command of known.commands) {
    const path = onPath(command);
    if (path !== null && (await isSupportedVersion(path, known))) return path;
  }
  const [command = known.packageName] = known.commands;
  if (!(await hasApt()))
    throw missingError([known, ...Object.values(knownServers).filter((each) => each !== known && !isOnPath(each))]);
  return (await debianBinary(command, known.packageName, cacheDir, log)).path;
}

function isOnPath({ commands }: ServerPackage): boolean {
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

function missingError(missing: readonly ServerPackage[]): LocalError {
  const { message, fix } = describeMissingServers(missing, foundManager());
  return new LocalError("binary_missing", message, { fix });
}

function foundManager(): PackageManager | null {
  const managers = Object.keys(packageManagers) as PackageManager[];
  return managers.find((name) => onPath(name) !== null) ?? null;
}

/** What is missing and the command that installs it; other package managers use the names of Homebrew. `manager` null: none is known. Pure. */
export function describeMissingServers(
  missing: readonly Pick<ServerPackage, "commands" | "minVersion" | "brewName">[],
  manager: PackageManager | null,
): { message: string; fix: string } {
  const names = missing
    .map(({ commands, minVersion }) => `${commands[0] ?? ""} ${minVersion.join(".")} or newer`)
    .join(" and ");
  const verb = missing.length > 1 ? "are" : "is";
  const packages = missing.map(({ brewName }) => brewName);
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

async function isSupportedVersion(
  path: string,
  { version, minVersion: [major, minor] }: ServerPackage,
): Promise<boolean> {
  const [, actualMajor, actualMinor] = version.exec((await run(path, ["--version"])).stdout) ?? [];
  return Number(actualMajor) > major || (Number(actualMajor) === major && Number(actualMinor) >= minor);
}

/** The path of bubblewrap; null if it is not available. The cluster then runs without it, and `exec` reports its isolation. */
export async function findBubblewrap(serversDir: string, print: LogSink): Promise<string | null> {
  const installed = onPath("bwrap");
  if (installed !== null || process.platform !== "linux") return installed;
  try {
    if (await hasApt()) return (await debianBinary("bwrap", "bubblewrap", serversDir, print)).path;
  } catch (error) {
    print(describeMissingBubblewrap(error, serversDir));
    return null;
  }
  const manager = foundManager();
  print(describeMissingBubblewrap(undefined, serversDir, manager === null ? null : packageManagers[manager]));
  return null;
}

/** What to tell when bubblewrap cannot be used, by the error of unpacking it. `manager`: the command that installs packages, if known. Pure. */
export function describeMissingBubblewrap(
  error: unknown,
  serversDir: string,
  manager: string | null = "apt install",
): string {
  const isFull =
    isDiskFull(error) || /no space left|quota exceeded/i.test(error === undefined ? "" : errorMessage(error));
  if (isFull)
    return `The disk of ${serversDir} is full: bubblewrap cannot be unpacked, and \`exec\` has no sandbox. Free some space.`;
  const install = manager === null ? "your package manager" : `\`${manager} bubblewrap\``;
  return `bubblewrap not found: \`exec\` has no sandbox. Install it with ${install}.`;
}
