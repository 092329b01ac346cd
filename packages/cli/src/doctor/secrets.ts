// Checks secrets: the files that contain them, the variables that settings name, and stored secrets that no service receives.

import { existsSync, readFileSync, statSync } from "node:fs";

import { isReadByService, readSecrets, secretsPath, withSecrets } from "@parley/local";

import { missingSecrets } from "../cluster/settings.ts";
import type { HomeView } from "../cluster/target.ts";
import { type DoctorContext, error, type Finding, fixesFor, ok, quoted, startFix, warning } from "./finding.ts";

/** Checks that only its owner can read a file that contains a secret. */
export function secretFileFinding(id: string, path: string, mode: number): Finding {
  const others = mode & 0o077;
  return others === 0
    ? ok(id, `${path} is readable only by its owner`)
    : error(id, `${path} can be read by others (mode ${(mode & 0o777).toString(8)})`, `chmod 600 ${quoted(path)}`);
}

export function secretFile(id: string, path: string): Finding[] {
  return existsSync(path) ? [secretFileFinding(id, path, statSync(path).mode)] : [];
}

/** The permissions of `secrets.env`, names in it that no service receives, and changes since the start. Values are never shown. */
export function secretsFile({ path: home, state }: HomeView): Finding[] {
  const path = secretsPath(home);
  if (!existsSync(path)) return [];
  const { mode, mtimeMs } = statSync(path);
  const unread = Object.keys(readSecrets(home)).filter((name) => !isReadByService(name));
  return [
    secretFileFinding("secrets-file", path, mode),
    ...unread.map((name) => unreadFinding(name, path)),
    ...(state !== null && mtimeMs > Date.parse(state.startedAt)
      ? [
          warning(
            "secrets-file",
            `${path} was changed after the start; the services have the earlier secrets`,
            fixesFor(false).restart,
          ),
        ]
      : []),
  ];
}

/** A stored name that no service receives, usually because it lacks the required prefix. */
export function unreadFinding(name: string, path: string): Finding {
  return warning(
    "secrets-file",
    `${name} in ${path} is not passed to any service`,
    `rename it: PARLEY_CHANNEL_… for channels and webhooks, PARLEY_TOOL_… for commands, PARLEY_MCP_… for MCP servers, PARLEY_AGENT_… for models`,
  );
}

export async function secrets({ settingsFile, io, home, explicitUrl }: DoctorContext): Promise<Finding[]> {
  // The environment of services on another machine is not visible here.
  if (settingsFile === null || explicitUrl) return [];
  const { ConfigError, loadSettings } = await import("@parley/chassis/settings");
  try {
    const started = gatewayEnvironment(home.state?.replicas.find(({ httpPort }) => httpPort !== null)?.process?.pid);
    const missing = missingSecrets(loadSettings(settingsFile, io.env), {
      ...withSecrets(home.path, io.env),
      ...started,
    });
    if (missing.length === 0) return [ok("secrets", "every secret that parley.toml names is set")];
    const next = home.state === null ? `   and then: ${startFix}` : `, then ${fixesFor(false).restart}`;
    return missing.map(({ name, wantedBy }) =>
      error(
        "secrets",
        `${name} is not set; ${wantedBy} needs it`,
        `add ${name}=… to ${quoted(secretsPath(home.path))}${next}`,
      ),
    );
  } catch (failure) {
    if (failure instanceof ConfigError) return []; // reported by `settings`
    throw failure;
  }
}

/** The names of a running gateway's variables, without values. Linux only; empty elsewhere. */
function gatewayEnvironment(pid: number | undefined): Record<string, string> {
  if (pid === undefined) return {};
  try {
    const names = readFileSync(`/proc/${pid}/environ`, "utf8")
      .split("\0")
      .filter((pair) => pair.indexOf("=") !== pair.length - 1)
      .map((pair) => pair.slice(0, Math.max(0, pair.indexOf("="))));
    return Object.fromEntries(names.map((name) => [name, "set"]));
  } catch {
    return {};
  }
}
