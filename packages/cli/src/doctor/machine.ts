// Checks this machine: Node, dependencies, the data folder, disk, settings and the secrets that they name.

import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { missingServers } from "@parley/local";
import { errorMessage, namesOneTool, type PermissionSettings, unmatchedHooks } from "@parley/contracts";

import { type Check, type DoctorContext, error, type Finding, ok, quoted, startFix, warning } from "./finding.ts";
import { secretFile, secrets, secretsFile } from "./secrets.ts";

const requiredNode = 24;
const mib = 1024 * 1024;
const root = fileURLToPath(new URL("../../../../", import.meta.url));

export function nodeFinding(version: string): Finding {
  return Number(version.split(".")[0]) >= requiredNode
    ? ok("node", `Node ${version}`)
    : error("node", `Node ${version} is too old: ${requiredNode} is needed`, "npm run parley -- doctor");
}

export function diskFinding(freeBytes: number, folder: string): Finding {
  const free = `${Math.floor(freeBytes / mib)} MiB free for ${folder}`;
  const fix = `free some space, or move the data: PARLEY_HOME=<folder> ${startFix}`;
  if (freeBytes < 100 * mib) return error("disk", free, fix);
  return freeBytes < 1024 * mib ? warning("disk", free, fix) : ok("disk", free);
}

export const machineChecks: readonly Check[] = [
  { id: "node", run: async () => [nodeFinding(process.versions.node)] },
  { id: "dependencies", run: async () => [dependencies()] },
  { id: "servers", run: servers },
  { id: "home", run: async ({ home, explicitUrl }) => (explicitUrl ? [] : [folder(home.path)]) },
  { id: "token", run: async ({ home }) => secretFile("token", join(home.path, "token")) },
  { id: "state", run: async ({ home }) => secretFile("state", join(home.path, "state.json")) },
  { id: "secrets-file", run: async ({ home, explicitUrl }) => (explicitUrl ? [] : secretsFile(home)) },
  { id: "disk", run: async ({ home, explicitUrl }) => (explicitUrl ? [] : [await disk(home.path)]) },
  { id: "settings", run: async (context) => [await settings(context)] },
  { id: "hooks", run: hooks },
  { id: "secrets", run: secrets },
  { id: "permissions", run: permissions },
];

/** The programs of the private servers, which `npm start` takes from PATH or downloads with apt. */
async function servers({ explicitUrl, home, io }: DoctorContext): Promise<Finding[]> {
  // A running cluster has its servers; servers of the operator need no program here.
  if (explicitUrl || home.state !== null || (io.env["REDIS_URL"] && io.env["NATS_URL"])) return [];
  const missing = await missingServers();
  return missing === null ? [] : [error("servers", missing.message, missing.fix ?? startFix)];
}

/** The marker file of the bootstrap contains the hash of the lock file and the platform. */
function dependencies(): Finding {
  const lock = join(root, "pnpm-lock.yaml");
  if (!existsSync(lock)) return ok("dependencies", "installed with the program");
  const marker = join(root, "node_modules", ".parley-installed");
  const hash = createHash("sha256").update(readFileSync(lock)).digest("hex");
  const wanted = `${hash} ${process.platform}-${process.arch}`;
  if (existsSync(marker) && readFileSync(marker, "utf8") === wanted) return ok("dependencies", "match the lock file");
  return warning("dependencies", "do not match the lock file", "npm run parley -- --help   (installs them first)");
}

function folder(path: string): Finding {
  if (!existsSync(path)) return warning("home", `${path} does not exist yet`, startFix);
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return error(
      "home",
      `${path} cannot be written to`,
      `chown -R $(id -u) ${quoted(path)} && chmod u+rwx ${quoted(path)}`,
    );
  }
  const mode = statSync(path).mode & 0o777;
  return (mode & 0o022) === 0
    ? ok("home", `${path} is writable only by its owner`)
    : error("home", `${path} can be changed by others (mode ${mode.toString(8)})`, `chmod go-w ${quoted(path)}`);
}

async function disk(home: string): Promise<Finding> {
  let place = home;
  while (!existsSync(place)) place = dirname(place);
  const { bavail, bsize } = await statfs(place);
  return diskFinding(bavail * bsize, home);
}

async function settings({ settingsFile, io }: DoctorContext): Promise<Finding> {
  if (settingsFile === null)
    return ok("settings", "no parley.toml; parley config print --origin shows the effective settings");
  const { loadSettings } = await import("@parley/chassis/settings");
  try {
    loadSettings(settingsFile, io.env);
    return ok("settings", `${settingsFile} is valid`);
  } catch (failure) {
    return error("settings", errorMessage(failure), `parley config check ${quoted(settingsFile)}`);
  }
}

/** Reports allow rules that cover several tools, and their limits. */
export function wildcardFinding({
  allow,
  guest_allow: guestAllow,
}: Pick<PermissionSettings, "allow" | "guest_allow">): Finding {
  const several = (rules: readonly string[]) => rules.filter((rule) => !namesOneTool(rule));
  const found = [
    ...several(allow).map((rule) => `allow "${rule}"`),
    ...several(guestAllow).map((rule) => `guest_allow "${rule}"`),
  ];
  if (found.length === 0) return ok("permissions", "no allow rule covers several tools");
  return warning(
    "permissions",
    `${found.join(", ")}: covers several tools, so calls run without approval in turns without untrusted content. Such rules do not apply in tainted turns, and allow does not apply to guests and webhooks`,
    "name the tools in full, such as exec(git *), or remove the rule: [permissions] allow = []   (docs/permissions.md)",
  );
}

async function permissions({ settingsFile, io, explicitUrl }: DoctorContext): Promise<Finding[]> {
  if (settingsFile === null || explicitUrl) return [];
  const { ConfigError, loadSettings } = await import("@parley/chassis/settings");
  try {
    return [wildcardFinding(loadSettings(settingsFile, io.env).permissions)];
  } catch (failure) {
    if (failure instanceof ConfigError) return []; // the check `settings` reports it
    throw failure;
  }
}

/** Reports hooks that never run, because their matcher matches no tool, and hooks whose program is missing on this machine. */
async function hooks({ settingsFile, io, explicitUrl }: DoctorContext): Promise<Finding[]> {
  if (settingsFile === null) return [];
  const { ConfigError, loadSettings, missingHookPrograms } = await import("@parley/chassis/settings");
  try {
    const found = loadSettings(settingsFile, io.env).hooks;
    const missing = explicitUrl ? [] : missingHookPrograms(found, dirname(settingsFile));
    return [
      ...unmatchedHooks(found).map((each) => warning("hooks", each, `parley config check ${quoted(settingsFile)}`)),
      ...missing.map((each) =>
        warning("hooks", each, `put it there, or correct the hook's command in ${settingsFile}`),
      ),
    ];
  } catch (failure) {
    if (failure instanceof ConfigError) return []; // reported by `settings`
    throw failure;
  }
}
