// The store's configuration: the only reader of its environment.
import { resolve } from "node:path";
import {
  ConfigError,
  parseEnvironment,
  tlsFilesIn,
  withSecretsFolder,
  type BaseConfig,
  type Environment,
  type TlsFiles,
} from "@parley/chassis";
import { z } from "zod";
import type { BlobBackendsConfig } from "./blobs/open.ts";
import type { BucketConfig } from "./blobs/backend.ts";
import { withTls } from "./db/database-url.ts";

export interface StoreConfig extends BaseConfig, BlobBackendsConfig {
  /** URL of a role that can only read and write data. */
  databaseUrl: string;
  /** The files of its TLS. */
  databaseTls: TlsFiles;
  /** Maximum connections of this replica. */
  poolSize: number;
  /** How long operation ids are stored: longer than any caller retries. */
  opRetentionHours: number;
  eventRetentionDays: number;
  /** How long entries of the audit log are kept; 0: for ever. */
  auditRetentionDays: number;
}

/** An empty variable counts as unset. */
const optionalText = z
  .string()
  .transform((text) => (text === "" ? undefined : text))
  .optional();

/** The database refuses to delete newer entries of the audit log (migration 0055). */
const minAuditDays = 90;

const StoreEnv = z.object({
  DATABASE_URL: z.string({ error: "missing: the PostgreSQL URL of the store's role" }).min(1),
  PARLEY_STORE_POOL: z.coerce.number().int().min(1).max(200).default(16),
  PARLEY_OP_RETENTION_HOURS: z.coerce.number().min(1).default(24),
  PARLEY_EVENT_RETENTION_DAYS: z.coerce.number().min(1).default(90),
  PARLEY_AUDIT_RETENTION_DAYS: z.coerce
    .number()
    .int()
    .refine(
      (days) => days === 0 || days >= minAuditDays,
      `must be 0 (entries are kept for ever) or at least ${minAuditDays}`,
    )
    .default(0),
  PARLEY_BLOB_DIR: optionalText,
  PARLEY_BLOB_BUCKET: optionalText,
  PARLEY_BLOB_ENDPOINT: z.union([z.literal(""), z.url({ protocol: /^https?$/ })]).optional(),
  PARLEY_BLOB_REGION: optionalText,
  PARLEY_BLOB_PATH_STYLE: z.enum(["", "true", "false"]).optional(),
  PARLEY_BLOB_PREFIX: optionalText,
  AWS_REGION: optionalText,
  AWS_ACCESS_KEY_ID: optionalText,
  AWS_SECRET_ACCESS_KEY: optionalText,
  AWS_SESSION_TOKEN: optionalText,
});

export function readConfig(env: Environment, base: BaseConfig): StoreConfig {
  const store = parseEnvironment(StoreEnv, env);
  return {
    ...base,
    databaseUrl: withTls(store.DATABASE_URL, env),
    databaseTls: tlsFilesIn(env, "DATABASE"),
    poolSize: store.PARLEY_STORE_POOL,
    opRetentionHours: store.PARLEY_OP_RETENTION_HOURS,
    eventRetentionDays: store.PARLEY_EVENT_RETENTION_DAYS,
    auditRetentionDays: store.PARLEY_AUDIT_RETENTION_DAYS,
    blobFolder: store.PARLEY_BLOB_DIR === undefined ? null : resolve(store.PARLEY_BLOB_DIR),
    blobBucket: bucketConfig(store),
  };
}

function bucketConfig(env: z.infer<typeof StoreEnv>): BucketConfig | null {
  if (env.PARLEY_BLOB_BUCKET === undefined) return null;
  const endpoint = env.PARLEY_BLOB_ENDPOINT || null;
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_SESSION_TOKEN: token } = env;
  const prefix = env.PARLEY_BLOB_PREFIX ?? "";
  return {
    bucket: env.PARLEY_BLOB_BUCKET,
    endpoint,
    region: env.PARLEY_BLOB_REGION ?? env.AWS_REGION ?? "us-east-1",
    // Self-hosted servers rarely have a host name for each bucket.
    pathStyle: env.PARLEY_BLOB_PATH_STYLE ? env.PARLEY_BLOB_PATH_STYLE === "true" : endpoint !== null,
    prefix: prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`,
    credentials:
      accessKeyId === undefined || secretAccessKey === undefined
        ? null
        : { accessKeyId, secretAccessKey, ...(token === undefined ? {} : { sessionToken: token }) },
  };
}

/** The folders of a deployment, by the variable that names them. */
export const folderVariables = {
  blobs: "PARLEY_BLOB_DIR",
  workspace: "PARLEY_WORKSPACE",
  checkpoints: "PARLEY_CHECKPOINTS",
  state: "PARLEY_STATE",
} as const;
export type FolderName = keyof typeof folderVariables;
export type Folders = Partial<Record<FolderName, string>>;

/** What a backup reads and a restore writes; `databaseUrl`: of the role that owns the schema. Throws ConfigError. */
export function readBackupConfig(variables: Environment = process.env): { databaseUrl: string; folders: Folders } {
  const env = withSecretsFolder(variables);
  const url = env["DATABASE_URL"];
  if (url === undefined || url === "")
    throw new ConfigError("DATABASE_URL is missing: the PostgreSQL URL of the role that owns the schema");
  const folders: Folders = {};
  for (const name of Object.keys(folderVariables) as FolderName[]) {
    const path = env[folderVariables[name]];
    if (path !== undefined && path !== "") folders[name] = resolve(path);
  }
  return { databaseUrl: withTls(url, env), folders };
}
