// The home folder: who holds it, the token, and what the running cluster says about itself there.
//
//   lock         names the supervisor that holds the home     state.json   where everything is, while it runs
//   token        the bearer token, mode 0600                  logs/        one file a process
//   servers/     unpacked packages                            workspace/   the tools' files
//   postgres/ redis/ nats/   data

import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import { services } from "@parley/contracts";
import { z } from "zod";

import { LocalError } from "./errors.ts";
import { privateFolder } from "./folders.ts";
import { tryLock, type FileLock } from "./lock.ts";
import { isAlive } from "./processes.ts";

export interface Home {
  readonly path: string;
  readonly logs: string;
  readonly workspace: string;
  readonly servers: string;
}

/** Makes the folder and those in it where they are missing. */
export function openHome(path: string): Home {
  mkdirSync(path, { recursive: true });
  const real = realpathSync(path);
  // Where PostgreSQL has to run as another user than root, that user must be able to pass through; it cannot look around.
  chmodSync(real, process.getuid?.() === 0 ? 0o711 : 0o700);
  const servers = join(real, "servers");
  mkdirSync(servers, { recursive: true });
  return {
    path: real,
    logs: privateFolder(join(real, "logs")),
    workspace: privateFolder(join(real, "workspace")),
    servers,
  };
}

/** Takes the home, or says who holds it. The lock of a process that died is taken over. */
export function holdHome(home: Home): FileLock {
  const lock = tryLock(join(home.path, "lock"));
  if (!("heldBy" in lock)) return lock;
  const state = readState(home.path);
  const since = state === null ? "" : `, since ${state.startedAt}, at ${state.httpUrl}`;
  throw new LocalError("home_busy", `${home.path} is in use by another Parley (pid ${lock.heldBy.pid}${since}).`, {
    fix: `Stop that one (Ctrl-C there, or kill ${lock.heldBy.pid}), or start this one with PARLEY_HOME=<another folder>.`,
  });
}

const MIN_TOKEN_LENGTH = 16;

/** The token: the one given, else the one kept, else a new one. It is kept, for the CLI, readable by its owner only. */
export function keepToken(home: Home, given: string | undefined): string {
  const file = join(home.path, "token");
  const kept = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  if (given && given.length < MIN_TOKEN_LENGTH) {
    throw new LocalError("bad_option", `PARLEY_TOKEN must have at least ${MIN_TOKEN_LENGTH} characters.`);
  }
  const token = given || kept || randomBytes(24).toString("base64url");
  if (token !== kept) {
    // Written aside and renamed: neither a full disk nor a file of another mode may cost the token that is kept.
    const draft = `${file}.new`;
    rmSync(draft, { force: true });
    writeFileSync(draft, `${token}\n`, { mode: 0o600 });
    renameSync(draft, file);
  }
  return token;
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

const ProcessNameSchema = z.object({ pid: z.int(), started: z.string() });

const ReplicaStateSchema = z.object({
  service: z.enum(services),
  /** `<service>-<number>`. */
  name: z.string(),
  number: z.int(),
  process: ProcessNameSchema.nullable(),
  ready: z.boolean(),
  /** ISO 8601, of the present process. */
  startedAt: z.string().nullable(),
  restarts: z.int(),
  httpPort: z.int().nullable(),
  healthPort: z.int().nullable(),
});
export type ReplicaState = z.infer<typeof ReplicaStateSchema>;

const ClusterStateSchema = z.object({
  supervisor: ProcessNameSchema,
  /** ISO 8601. */
  startedAt: z.string(),
  httpUrl: z.string(),
  httpUrls: z.array(z.string()),
  tokenFile: z.string(),
  logs: z.string(),
  namespace: z.string(),
  /** With the credentials of the operator. */
  natsUrl: z.string(),
  /** As the role that owns the schema. */
  databaseUrl: z.string(),
  redisUrl: z.string(),
  model: z.string(),
  /** The variables and flags with which settings were given at its start; a cluster of an older version does not say. */
  settings: z.record(z.string(), z.string()).default({}),
  replicas: z.array(ReplicaStateSchema),
});
export type ClusterState = z.infer<typeof ClusterStateSchema>;

export const STATE_FILE = "state.json";

/** Writes what the CLI reads; whole or not at all. */
export function writeState(home: Home, state: ClusterState): void {
  const draft = join(home.path, `${STATE_FILE}.new`);
  writeFileSync(draft, JSON.stringify(state, null, 2), { mode: 0o600 });
  renameSync(draft, join(home.path, STATE_FILE));
}

export function removeState(home: Home): void {
  rmSync(join(home.path, STATE_FILE), { force: true });
}

/** What a killed supervisor left behind, or the living one says; null when there is nothing to read. */
export function readAnyState(homePath: string): ClusterState | null {
  try {
    return ClusterStateSchema.parse(JSON.parse(readFileSync(join(homePath, STATE_FILE), "utf8")));
  } catch {
    return null;
  }
}

/** The cluster that runs on a home right now, or null. */
export function readState(homePath: string): ClusterState | null {
  const state = readAnyState(homePath);
  return state !== null && isAlive(state.supervisor) ? state : null;
}
