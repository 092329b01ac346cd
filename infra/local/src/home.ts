// The home folder: its lock, the token, and the state file of the running cluster.
//
//   lock         names the supervisor that holds the home     state.json   addresses and processes, while it runs
//   token        the bearer token, mode 0600                  logs/        one file per process
//   servers/     unpacked packages                            workspace/   the tools' files
//   postgres/ redis/ nats/   data                             secrets/     of added channel accounts, mode 0600

import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

import { services } from "@parley/contracts";
import { z } from "zod";

import { LocalError } from "./errors.ts";
import { type FileLock, tryLock } from "./lock.ts";
import { isAlive } from "./processes.ts";

export interface Home {
  readonly path: string;
  readonly logs: string;
  readonly workspace: string;
  readonly servers: string;
}

/** Creates the folder and its subfolders if they are missing. */
export function openHome(path: string): Home {
  makeFolder(resolve(path));
  const real = realpathSync(path);
  // If this process is root, PostgreSQL runs as another user, which must traverse the folder but cannot list it.
  chmodSync(real, process.getuid?.() === 0 ? 0o711 : 0o700);
  const servers = join(real, "servers");
  mkdirSync(servers, { recursive: true });
  return {
    path: real,
    logs: ensurePrivateFolder(join(real, "logs")),
    workspace: ensurePrivateFolder(join(real, "workspace")),
    servers,
  };
}

/**
 * Creates a folder with its parents. Node's `recursive` never ends where a folder exists and the system denies to create another one in it
 * with ENOENT, as /proc does.
 */
function makeFolder(path: string): void {
  if (existsSync(path) && statSync(path).isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  try {
    mkdirSync(path);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    const fix = "Choose another data folder with PARLEY_HOME=<folder>.";
    throw new LocalError("no_access", `${path} cannot be created.`, { fix, cause: error });
  }
}

/** Acquires the home's lock; throws LocalError `home_busy` with its holder. Replaces the lock of a dead process. */
export function lockHome(home: Home): FileLock {
  const lock = tryLock(join(home.path, "lock"));
  if (!("heldBy" in lock)) return lock;
  const state = readRunningState(home.path);
  const since = state === null ? "" : `, since ${state.startedAt}, at ${state.httpUrl}`;
  throw new LocalError("home_busy", `${home.path} is in use by another Parley (pid ${lock.heldBy.pid}${since}).`, {
    fix: `Talk to it with npx parley chat, stop it (Ctrl-C in its terminal, or kill ${lock.heldBy.pid}), or start this one with PARLEY_HOME=<another folder>.`,
  });
}

const minTokenLength = 16;

/** The token: the given one, else the stored one, else a new one. Stores it for the CLI, readable by its owner only. */
export function ensureToken(home: Home, given: string | undefined): string {
  const file = join(home.path, "token");
  const kept = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  if (given && given.length < minTokenLength) {
    throw new LocalError("bad_option", `PARLEY_TOKEN must have at least ${minTokenLength} characters.`);
  }
  const token = given || kept || randomBytes(24).toString("base64url");
  if (token !== kept) {
    // Write, then rename: a full disk or a file with another mode must not destroy the stored token.
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
  /** ISO 8601, of the current process. */
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
  /** With the operator's credentials. */
  natsUrl: z.string(),
  /** For the role that owns the schema. */
  databaseUrl: z.string(),
  redisUrl: z.string(),
  model: z.string(),
  /** The variables and flags that set settings at its start; absent in the state of an older version. */
  settings: z.record(z.string(), z.string()).default({}),
  /** The folder of the tools' files; absent in the state of an older version: `workspace` of the home. */
  workspace: z.string().optional(),
  replicas: z.array(ReplicaStateSchema),
});
export type ClusterState = z.infer<typeof ClusterStateSchema>;

export const stateFile = "state.json";

/** Writes the state for the CLI, atomically. */
export function writeState(home: Home, state: ClusterState): void {
  const draft = join(home.path, `${stateFile}.new`);
  writeFileSync(draft, JSON.stringify(state, null, 2), { mode: 0o600 });
  renameSync(draft, join(home.path, stateFile));
}

export function removeState(home: Home): void {
  rmSync(join(home.path, stateFile), { force: true });
}

/** The state of the running or killed supervisor; null if there is no valid file. */
export function readStateFile(homePath: string): ClusterState | null {
  try {
    return ClusterStateSchema.parse(JSON.parse(readFileSync(join(homePath, stateFile), "utf8")));
  } catch {
    return null;
  }
}

/** The state of the cluster that runs on a home; null if none runs. */
export function readRunningState(homePath: string): ClusterState | null {
  const state = readStateFile(homePath);
  return state !== null && isAlive(state.supervisor) ? state : null;
}

/** Creates a folder with mode 0700, and missing parents with default modes. Returns its real path. */
export function ensurePrivateFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  const real = realpathSync(path);
  chmodSync(real, 0o700);
  return real;
}

/** Writes a private file atomically, unless it already has this content: a server can then restart on a full disk. */
export function writeIfChanged(path: string, content: string): void {
  try {
    if (readFileSync(path, "utf8") === content) return;
  } catch {
    // Missing: written below.
  }
  writeFileSync(`${path}.new`, content, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
