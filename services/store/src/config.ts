// The store's configuration: the only reader of its environment.
import { resolve } from "node:path";
import { parseEnvironment, type BaseConfig, type Environment } from "@parley/chassis";
import { z } from "zod";

export interface StoreConfig extends BaseConfig {
  /** A role that may read and write data, and nothing else. */
  databaseUrl: string;
  /** Connections of this replica. */
  poolSize: number;
  /** How long operation ids are remembered: longer than any caller retries. */
  opRetentionHours: number;
  eventRetentionDays: number;
  /** Folder for attachments above 256 KiB, shared by all replicas; null: they are in the database. */
  blobFolder: string | null;
}

const StoreEnv = z.object({
  DATABASE_URL: z.string({ error: "missing: the PostgreSQL URL of the store's role" }).min(1),
  PARLEY_STORE_POOL: z.coerce.number().int().min(1).max(200).default(16),
  PARLEY_OP_RETENTION_HOURS: z.coerce.number().min(1).default(24),
  PARLEY_EVENT_RETENTION_DAYS: z.coerce.number().min(1).default(90),
  PARLEY_BLOB_DIR: z.string().min(1).optional(),
});

export function readConfig(env: Environment, base: BaseConfig): StoreConfig {
  const store = parseEnvironment(StoreEnv, env);
  return {
    ...base,
    databaseUrl: store.DATABASE_URL,
    poolSize: store.PARLEY_STORE_POOL,
    opRetentionHours: store.PARLEY_OP_RETENTION_HOURS,
    eventRetentionDays: store.PARLEY_EVENT_RETENTION_DAYS,
    blobFolder: store.PARLEY_BLOB_DIR === undefined ? null : resolve(store.PARLEY_BLOB_DIR),
  };
}
