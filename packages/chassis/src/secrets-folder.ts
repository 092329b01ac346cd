// Variables from files: a folder whose files have the names of variables, such as a mounted Kubernetes Secret. In a file, a secret is in no
// environment, which crash reports, child processes and `docker inspect` show.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { errorMessage } from "@parley/contracts";

import type { Environment } from "./config.ts";
import { ConfigError } from "./errors.ts";

/** Other files, such as the links of a Kubernetes volume, are not read. */
const variableName = /^[A-Z][A-Z0-9_]*$/;
/** The gateway reads the secrets of channels itself, again while it runs; one that it cannot read disables only its account. */
const readByGateway = "PARLEY_CHANNEL_";
/** Nobody but the owner and the group may read a secret; volumes of orchestrators give the group access. */
const forbiddenMode = 0o027;

/**
 * The environment, and each variable that is not set from the file of its name in the folder PARLEY_SECRETS_DIR. A missing folder has no
 * files. Throws ConfigError when a file cannot be read, or others may read it.
 */
export function withSecretsFolder(env: Environment): Environment {
  const folder = env["PARLEY_SECRETS_DIR"] || undefined;
  if (folder === undefined) return env;
  const all: Environment = { ...env };
  for (const name of filesIn(folder)) {
    if (!variableName.test(name) || name.startsWith(readByGateway) || all[name]) continue;
    all[name] = contentOf(join(folder, name));
  }
  return all;
}

/** Throws ConfigError when secrets are files but nothing has this name. Its default is for servers on this machine, as without the folder. */
export function requireSecret(env: Environment, name: string): void {
  const folder = env["PARLEY_SECRETS_DIR"] || undefined;
  if (folder === undefined || env[name]) return;
  throw new ConfigError(`environment: ${name} is missing: add a file of this name to ${folder} (PARLEY_SECRETS_DIR)`);
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw new ConfigError(`environment: PARLEY_SECRETS_DIR: ${errorMessage(error)}`);
  }
}

function contentOf(path: string): string {
  try {
    if ((statSync(path).mode & forbiddenMode) !== 0)
      throw new Error(`${path} can be read or changed by others: chmod 600 ${path}`);
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new ConfigError(`environment: PARLEY_SECRETS_DIR: ${errorMessage(error)}`);
  }
}
