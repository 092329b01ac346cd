// Programs of a named Debian suite that this machine's own suite lacks. They are unpacked with all their dependencies, down to the C
// library, and run in bubblewrap with the unpacked files as their system. Nothing is installed, and root is not needed.
//
// <cacheDir>/<name>-<suite>/root            the unpacked files; the folder is renamed into place when it is complete
// <cacheDir>/<name>-<suite>/versions.json   the version of each package
// <cacheDir>/.apt-<suite>                   the package lists of the suite

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { LocalError } from "../errors.ts";
import { withLock } from "../lock.ts";
import { aptGet, unpackAll } from "./debian.ts";
import { findBubblewrap } from "./locate.ts";
import { tail } from "./process.ts";

export interface SuiteOptions {
  /** The name of the cache folder. */
  readonly name: string;
  /** For example `sid`. */
  readonly suite: string;
  readonly packages: readonly string[];
  readonly cacheDir: string;
  readonly log?: (line: string) => void;
}

/** Folders of this machine that a program sees at their own paths. */
export interface SuiteMounts {
  readonly writable?: readonly string[];
  readonly readOnly?: readonly string[];
}

export interface SuitePrograms {
  /** The version of an unpacked package, for example `1.160.0-1`. Sid changes daily, so tests print it. */
  version(packageName: string): string | undefined;
  /**
   * The command that runs a program of the suite with this machine's network. It sees no files but the unpacked ones, `mounts` and an empty
   * `/tmp`, and it ends when the caller ends.
   */
  command(program: string, args: readonly string[], mounts: SuiteMounts): [string, string[]];
}

/** Verifies the signature of the suite's lists; on other distributions the package debian-archive-keyring installs it. */
const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const debianArchive = "http://deb.debian.org/debian";
/** Links of the root folder into `usr`, which the package base-files has. */
const usrLinks = ["bin", "sbin", "lib", "lib64"];

/**
 * Downloads and unpacks packages of a suite on the first call. Safe for concurrent processes: one of them does the work. Rejects with a
 * LocalError when apt, the archive's keys, the network or bubblewrap is missing.
 */
export async function suitePrograms(options: SuiteOptions): Promise<SuitePrograms> {
  const { name, suite, cacheDir, log = () => undefined } = options;
  const home = join(cacheDir, `${name}-${suite}`);
  const bwrap = await findBubblewrap(cacheDir, log);
  if (bwrap === null) throw new LocalError("binary_missing", `Programs of Debian ${suite} need bubblewrap.`);
  mkdirSync(cacheDir, { recursive: true });
  const isComplete = (): boolean => options.packages.every((packageName) => packageName in versionsIn(home));
  if (!isComplete()) {
    await withLock(`${home}.lock`, async () => {
      if (isComplete()) return;
      log(`downloading ${options.packages.join(", ")} of Debian ${suite} (unpacked in ${cacheDir}, not installed)`);
      const draft = mkdtempSync(join(cacheDir, `.${name}-${suite}-`));
      try {
        await unpackSuite(options, draft);
        rmSync(home, { recursive: true, force: true });
        renameSync(draft, home);
      } finally {
        rmSync(draft, { recursive: true, force: true });
      }
    });
  }
  const root = join(home, "root");
  const versions = versionsIn(home);
  return {
    version: (packageName) => versions[packageName],
    command: (program, args, mounts) => [bwrap, [...sandbox(root, mounts), program, ...args]],
  };
}

function versionsIn(home: string): Readonly<Record<string, string>> {
  const file = join(home, "versions.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Record<string, string>) : {};
}

async function unpackSuite({ suite, packages, cacheDir }: SuiteOptions, draft: string): Promise<void> {
  const lists = suiteLists(suite, cacheDir);
  // Lists of an earlier call are recent enough unless a package has since been replaced in the archive.
  let outcome = await download(lists, packages, draft);
  if (outcome.code !== 0) {
    const update = await withLock(join(cacheDir, `apt-${suite}.lock`), () => aptGet(["update"], lists, draft));
    outcome = update.code === 0 ? await download(lists, packages, draft) : update;
  }
  if (outcome.code !== 0) {
    throw new LocalError(
      "binary_missing",
      `apt-get could not download ${packages.join(", ")} of Debian ${suite}:\n${tail(outcome, 3)}`,
      { fix: "Check the network and the package sources." },
    );
  }
  const versions = Object.fromEntries(
    readdirSync(draft)
      .filter((file) => file.endsWith(".deb"))
      .map((file) => file.split("_"))
      .map(([packageName = "", version = ""]) => [packageName, decodeURIComponent(version)]),
  );
  writeFileSync(join(draft, "versions.json"), JSON.stringify(versions));
  const root = join(draft, "root");
  mkdirSync(root);
  for (const folder of usrLinks) symlinkSync(`usr/${folder}`, join(root, folder));
  await unpackAll(draft, root);
  rmSync(join(draft, "partial"), { recursive: true });
  mkdirSync(join(root, "etc"), { recursive: true });
  writeFileSync(join(root, "etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n");
}

/** Downloads packages and everything that they depend on into `folder`, as if nothing were installed. */
function download(lists: readonly string[], packages: readonly string[], folder: string) {
  mkdirSync(join(folder, "partial"), { recursive: true });
  const into = ["-o", `Dir::Cache::archives=${folder}`, "-o", "Debug::NoLocking=1"];
  const install = ["install", "--download-only", "--no-install-recommends", "--yes", ...packages];
  return aptGet([...into, ...install], lists, folder);
}

function suiteLists(suite: string, cacheDir: string): string[] {
  const folder = join(cacheDir, `.apt-${suite}`);
  for (const part of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(folder, part), { recursive: true });
  const status = join(folder, "status");
  if (!existsSync(status)) writeFileSync(status, "");
  const sources = join(folder, "sources.list");
  writeFileSync(sources, `deb [signed-by=${debianKeyring}] ${debianArchive} ${suite} main\n`);
  const settings = {
    "Dir::State": folder,
    "Dir::State::lists": join(folder, "lists"),
    "Dir::State::status": status,
    "Dir::Cache": join(folder, "cache"),
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
  };
  return Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
}

/** The root is an empty file system in memory, so that mounts may have any path. */
function sandbox(root: string, { writable = [], readOnly = [] }: SuiteMounts): string[] {
  const folders = readdirSync(root).filter((name) => !usrLinks.includes(name));
  const options = [
    ["--die-with-parent", "--unshare-pid", "--clearenv"],
    ["--setenv", "PATH", "/usr/bin:/usr/sbin", "--setenv", "LANG", "C.UTF-8"],
    ...folders.map((name) => ["--ro-bind", join(root, name), `/${name}`]),
    ...usrLinks.map((name) => ["--symlink", `usr/${name}`, `/${name}`]),
    ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"],
    ...readOnly.map((path) => ["--ro-bind", path, path]),
    ...writable.map((path) => ["--bind", path, path]),
  ];
  return options.flat();
}
