// The secrets of a data folder: `secrets.env`, NAME=value lines that only the owner can read. `npm start` adds them to its environment;
// variables of the caller override them.

import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

import { services } from "@parley/contracts";

import { type Environment, isSet, serviceEnvironment } from "./environment.ts";
import { LocalError } from "./errors.ts";

const secretsFile = "secrets.env";

export function secretsPath(homePath: string): string {
  return join(homePath, secretsFile);
}

/** The secrets by the name of their variable; empty without a file. Throws for a file that cannot be read. */
export function readSecrets(homePath: string): Record<string, string> {
  const found = parseEnv(contentOf(secretsPath(homePath)));
  return Object.fromEntries(Object.entries(found).filter((entry): entry is [string, string] => isSet(entry[1])));
}

/** The caller's environment with the secrets that it does not set itself. */
export function withSecrets(homePath: string, environment: Environment): Environment {
  const own = Object.entries(environment).filter(([, value]) => isSet(value));
  return { ...environment, ...readSecrets(homePath), ...Object.fromEntries(own) };
}

/** Adds or replaces secrets, and keeps all other lines of the file. Throws LocalError for a value that a line cannot contain. */
export function keepSecrets(homePath: string, secrets: Readonly<Record<string, string>>): void {
  const path = secretsPath(homePath);
  const kept = contentOf(path)
    .split("\n")
    .filter((line) => line !== "" && !(nameIn(line) in secrets));
  const added = Object.entries(secrets).map(([name, value]) => `${name}=${quoted(name, value)}`);
  const draft = `${path}.new`;
  // Write, then rename: a full disk must not destroy the stored secrets, and the new file always has this mode.
  rmSync(draft, { force: true });
  writeFileSync(draft, `${[...kept, ...added].join("\n")}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

/** True if a service receives this variable from the environment of `npm start`. */
export function isReadByService(name: string): boolean {
  const context = {
    namespace: "",
    natsUrls: { store: "", "agent-core": "", "tool-runner": "", "channel-gateway": "" },
    storeUrl: "",
    redisUrl: "",
    tokenSha256: "",
    configPath: null,
    folders: { workspace: "", state: "", checkpoints: "" },
    secretsDir: "",
    bwrapPath: null,
  };
  const own = ["DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL", "NATS_URL", "PARLEY_TOKEN"];
  const environment = {
    PARLEY_BLOB_BUCKET: "set",
    DATABASE_URL: "set",
    REDIS_URL: "set",
    NATS_URL: "set",
    [name]: "set",
  };
  return (
    own.includes(name) ||
    services.some((service) => name in serviceEnvironment(service, { name: "", httpPort: null }, context, environment))
  );
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function nameIn(line: string): string {
  return (line.split("=")[0] ?? "").replace(/^\s*export\s/, "").trim();
}

/** Single quotes, or the first other quote that the value does not contain; inside of them nothing is expanded. */
function quoted(name: string, value: string): string {
  const quote = ["'", "`", '"'].find((each) => !value.includes(each));
  if (quote === undefined || /[\r\n\0]/.test(value) || (quote === '"' && value.includes("\\"))) {
    throw new LocalError(
      "bad_option",
      `The value of ${name} has line breaks or all kinds of quotes, which ${secretsFile} cannot contain.`,
      {
        fix: `Set the variable ${name} in the environment of npm start instead.`,
      },
    );
  }
  return `${quote}${value}${quote}`;
}
