// Downloads Debian packages and unpacks them into a cache folder: nothing is installed in the system, and root is not needed.
//
// <cacheDir>/<package>/root   the unpacked files of the package and of the libraries that this machine lacks
// <cacheDir>/<package>/bin    one start script per binary; the folder is renamed into place when it is complete
// <cacheDir>/.apt             separate package lists, if the system has none or outdated ones

import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";

import { sizeText } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";

import { diskFullError, LocalError } from "../errors.ts";
import { withLock } from "../lock.ts";
import { type Outcome, run, tail } from "./process.ts";

export interface DebianBinary {
  /** The executable; it sets the library path if the machine lacks libraries. */
  readonly path: string;
  /** The root of the unpacked files. */
  readonly root: string;
}

const binaryFolders = ["usr/bin", "usr/sbin", "bin", "sbin", "usr/games"];

let apt: Promise<boolean> | undefined;

/** True if packages can be downloaded and unpacked: `apt-get` and `dpkg` are installed. */
export async function hasApt(): Promise<boolean> {
  apt ??= Promise.all([run("apt-get", ["--version"]), run("dpkg", ["--version"])]).then((both) =>
    both.every(({ code }) => code === 0),
  );
  return apt;
}

/**
 * The binary `name` of a Debian package. The first call downloads and unpacks it under `cacheDir`.
 * Safe for concurrent processes: one of them does the work.
 */
export async function debianBinary(
  name: string,
  packageName: string,
  cacheDir: string,
  log?: (line: string) => void,
): Promise<DebianBinary> {
  const home = join(cacheDir, packageName);
  const binary: DebianBinary = { path: join(home, "bin", name), root: join(home, "root") };
  await unpackOnce(packageName, cacheDir, (folder) => existsSync(join(folder, "bin", name)), `program ${name}`, log);
  return binary;
}

/** The path of the shared library `name` of a Debian package, unpacked like `debianBinary` does. */
export async function debianLibrary(name: string, packageName: string, cacheDir: string): Promise<string> {
  const root = join(cacheDir, packageName, "root");
  await unpackOnce(packageName, cacheDir, (folder) => existsSync(join(folder, "root")), `library ${name}`);
  const path = sharedObjects(root).find((file) => file.endsWith(`/${name}`));
  if (path === undefined) throw lacks(packageName, `library ${name}`);
  return path;
}

/** Unpacks a package into its folder unless it is there; `isComplete` checks the folder before it is renamed into place. */
async function unpackOnce(
  packageName: string,
  cacheDir: string,
  isComplete: (folder: string) => boolean,
  wanted: string,
  log?: (line: string) => void,
): Promise<void> {
  const home = join(cacheDir, packageName);
  if (isComplete(home)) return;
  mkdirSync(cacheDir, { recursive: true });
  await withLock(join(cacheDir, `${packageName}.lock`), async () => {
    if (isComplete(home)) return;
    const draft = mkdtempSync(join(cacheDir, `.${packageName}-`));
    try {
      await unpackWhole(packageName, draft, cacheDir, log);
      makeStarters(draft);
      if (!isComplete(draft)) throw lacks(packageName, wanted);
      chmodSync(draft, 0o755);
      rmSync(home, { recursive: true, force: true });
      renameSync(draft, home);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  });
}

function lacks(packageName: string, wanted: string): LocalError {
  return new LocalError("binary_missing", `The Debian package ${packageName} has no ${wanted}.`);
}

/** Unpacks a package into `<draft>/root`, with its dependencies if it cannot run on this machine without them. */
async function unpackWhole(
  packageName: string,
  draft: string,
  cacheDir: string,
  log: (line: string) => void = () => undefined,
): Promise<void> {
  const root = join(draft, "root");
  mkdirSync(root);
  const lists = await fetchInto(draft, [packageName], cacheDir, log, packageName);
  await unpackAll(draft, root);
  if (!(await lacksSomething(root))) return;
  const others = (await neededPackages(packageName, lists)).filter((other) => other !== packageName);
  const title = `${others.length} packages that ${packageName} needs`;
  if (others.length > 0) await fetchInto(draft, others, cacheDir, log, title);
  await unpackAll(draft, root);
  const missing = await missingLibraries(root, programs(root));
  if (missing.length > 0) {
    throw new LocalError(
      "binary_missing",
      `${packageName} was unpacked, but this machine lacks ${missing.join(", ")}.`,
      {
        fix: `Install it with \`apt install ${packageName}\`.`,
      },
    );
  }
}

/**
 * Downloads packages into `draft` with the system's lists, else with separate lists. Returns the apt options of the lists used.
 * `title`: of the packages, for the log.
 */
async function fetchInto(
  draft: string,
  packages: readonly string[],
  cacheDir: string,
  log: (line: string) => void,
  title: string,
): Promise<readonly string[]> {
  log(`downloading ${title}${await downloadSize(packages, draft)}`);
  const download = (lists: readonly string[]): Promise<Outcome> => aptGet(["download", ...packages], lists, draft);
  let outcome = await download([]);
  if (outcome.code === 0) return [];
  const own = ownLists(cacheDir);
  // Lists of an earlier package are recent enough; they are updated only if the download fails.
  outcome = await download(own);
  if (outcome.code === 0) return own;
  log("downloading the package lists of this system");
  const update = await withLock(join(cacheDir, "apt.lock"), () => aptGet(["update"], own, draft));
  outcome = await download(own);
  if (outcome.code === 0) return own;
  const output = update.code === 0 ? tail(outcome, 3) : tail(update, 3);
  if (/no space left on device/i.test(output)) throw diskFullError(cacheDir);
  throw new LocalError("binary_missing", `apt-get could not download ${packages.join(", ")}:\n${output}`, {
    fix: `Check the network and the package sources, install it with \`apt install ${packages.join(" ")}\`, or run everything with \`docker compose up\`.`,
  });
}

/** What the packages' files have together, as ", 1.2 MiB"; empty without package lists. */
async function downloadSize(packages: readonly string[], cwd: string): Promise<string> {
  const { code, stdout } = await aptGet(["download", "--print-uris", ...packages], [], cwd);
  const sizes = [...stdout.matchAll(/^'\S+' \S+ (\d+)/gm)].map(([, bytes]) => Number(bytes));
  return code === 0 && sizes.length > 0 ? `, ${sizeText(sizes.reduce((sum, each) => sum + each, 0))}` : "";
}

function ownLists(cacheDir: string): string[] {
  const folder = join(cacheDir, ".apt");
  for (const part of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(folder, part), { recursive: true });
  return ["-o", `Dir::State::lists=${join(folder, "lists")}`, "-o", `Dir::Cache=${join(folder, "cache")}`];
}

/** Runs apt-get without root and without changing the system; `lists` are options. */
export async function aptGet(command: readonly string[], lists: readonly string[], cwd: string): Promise<Outcome> {
  const settings = ["DPkg::Lock::Timeout=300", "Acquire::Languages=none", "Acquire::Retries=2"];
  const options = ["-q", ...settings.flatMap((setting) => ["-o", setting]), ...lists];
  // The download folder is private, so apt's sandbox user could not write there.
  const user = process.getuid?.() === 0 ? ["-o", "APT::Sandbox::User=root"] : [];
  return run("apt-get", [...options, ...user, ...command], {
    cwd,
    env: { ...environment(), DEBIAN_FRONTEND: "noninteractive" },
  });
}

/** The packages that apt would install; simulated, so root is not needed. Excludes Perl and architecture-independent packages. */
async function neededPackages(packageName: string, lists: readonly string[]): Promise<string[]> {
  const simulate = ["install", "--simulate", "--no-install-recommends", "-o", "Debug::NoLocking=1", packageName];
  const outcome = await aptGet(simulate, lists, "/");
  if (outcome.code !== 0) {
    throw new LocalError(
      "binary_missing",
      `apt-get could not list the dependencies of ${packageName}:\n${tail(outcome, 3)}`,
    );
  }
  // "Inst name (version origin [arch])" is a new package; "Inst name [old version] (…" is an upgrade of an installed one.
  const fresh = [...outcome.stdout.matchAll(/^Inst (\S+) \(.*?\[(\S+)\]\)/gm)];
  return fresh.filter(([, name, arch]) => arch !== "all" && !/perl/.test(name ?? "")).map(([, name]) => name ?? "");
}

/** Unpacks the downloaded packages in `draft` into `root` and deletes them. */
export async function unpackAll(draft: string, root: string): Promise<void> {
  for (const file of readdirSync(draft).filter((name) => name.endsWith(".deb"))) {
    const outcome = await run("dpkg", ["-x", join(draft, file), root]);
    if (outcome.code !== 0) {
      if (/no space left on device/i.test(outcome.stderr)) throw diskFullError(draft);
      throw new LocalError("binary_missing", `dpkg could not unpack ${file}:\n${tail(outcome, 3)}`);
    }
    rmSync(join(draft, file));
  }
}

/** A program may be a link into another package (redis-server into redis-tools), or need libraries that are missing. */
async function lacksSomething(root: string): Promise<boolean> {
  const all = programs(root);
  if (all.some((path) => !existsSync(path))) return true;
  return (await missingLibraries(root, [...all, ...sharedObjects(root)])).length > 0;
}

async function missingLibraries(root: string, files: readonly string[]): Promise<string[]> {
  const env = { ...environment(), LD_LIBRARY_PATH: libraryFolders(root).join(":") };
  const missing = new Set<string>();
  for (const file of files) {
    const { stdout } = await run("ldd", [file], { env });
    for (const [, library = ""] of stdout.matchAll(/^\s*(\S+) => not found/gm)) missing.add(library);
  }
  return [...missing];
}

function programs(root: string): string[] {
  return binaryFolders
    .map((folder) => join(root, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
}

function sharedObjects(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.so(\.\d+)*$/.test(name))
    .map((name) => join(root, name));
}

function libraryFolders(root: string): string[] {
  const folders = ["usr/lib", "lib"].map((name) => join(root, name)).filter((folder) => existsSync(folder));
  const perMachine = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  return [...perMachine, ...folders].filter((folder) => {
    return statSync(folder).isDirectory() && readdirSync(folder).some((name) => /\.so(\.\d+)*$/.test(name));
  });
}

/** Writes a script `<draft>/bin/<program>` for each program. It finds the root relative to itself, so the folder may be moved. */
function makeStarters(draft: string): void {
  const root = join(draft, "root");
  const bin = join(draft, "bin");
  mkdirSync(bin);
  const libraries = libraryFolders(root).map((folder) => `$home/${relative(draft, folder)}`);
  const libraryPath = libraries.length === 0 ? "" : `LD_LIBRARY_PATH="${libraries.join(":")}" `;
  for (const program of programs(root)) {
    if (lstatSync(program).isDirectory() || !existsSync(program)) continue;
    const starter = join(bin, program.slice(program.lastIndexOf("/") + 1));
    const line = `${libraryPath}exec "$home/${relative(draft, program)}" "$@"`;
    writeFileSync(starter, `#!/bin/sh\nhome=\${0%/*}/..\n${line}\n`);
    chmodSync(starter, 0o755);
  }
}

function environment(): NodeJS.ProcessEnv {
  const { PATH = "/usr/bin:/bin", HOME = "/", http_proxy, https_proxy, APT_CONFIG } = process.env;
  return {
    PATH: `${PATH}:/usr/sbin:/sbin`,
    HOME,
    LC_ALL: "C",
    ...omitUndefined({ http_proxy, https_proxy, APT_CONFIG }),
  };
}
