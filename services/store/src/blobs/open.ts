// Opens the configured backends. A bucket takes precedence over a folder for writes; both are read.
import type { Logger } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import { filesystemBackend } from "./filesystem.ts";
import type { BlobBackend, BlobBackends, BucketConfig } from "./backend.ts";

export interface BlobBackendsConfig {
  /** Folder for attachments above 256 KiB, shared by all replicas; null: there is none. */
  blobFolder: string | null;
  /** Bucket for attachments above 256 KiB; null: there is none. */
  blobBucket: BucketConfig | null;
}

/** Loads the bucket's SDK only if a bucket is configured. */
export async function openBackends({ blobFolder, blobBucket }: BlobBackendsConfig, log: Logger): Promise<BlobBackends> {
  const folder = blobFolder === null ? null : filesystemBackend(blobFolder);
  const bucket = blobBucket === null ? null : await openBucket(blobBucket, log);
  return backendsOf([bucket, folder].filter((place) => place !== null));
}

async function openBucket(config: BucketConfig, log: Logger): Promise<BlobBackend> {
  const { s3Backend } = await import("./s3.ts");
  return s3Backend(config, (error) => log.warn({ reason: error.message }, "attachment bucket failed"));
}

/** New content is written to the first one. */
export function backendsOf(backends: readonly BlobBackend[]): BlobBackends {
  return {
    preferred: backends[0] ?? null,
    named(name) {
      const backend = backends.find((each) => each.name === name);
      if (backend !== undefined) return backend;
      const variable = name === "bucket" ? "PARLEY_BLOB_BUCKET" : "PARLEY_BLOB_DIR";
      throw new WireError("UNAVAILABLE", `the content is in a ${name}, but none is configured: set ${variable}`);
    },
  };
}
