// Opens the configured backends. A bucket takes precedence over a folder for writes; both are read.
import type { Logger } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import { folderPlace } from "./folder.ts";
import type { BlobPlace, BlobPlaces, BucketConfig } from "./place.ts";

export interface BlobPlacesConfig {
  /** Folder for attachments above 256 KiB, shared by all replicas; null: there is none. */
  blobFolder: string | null;
  /** Bucket for attachments above 256 KiB; null: there is none. */
  blobBucket: BucketConfig | null;
}

/** Loads the bucket's SDK only if a bucket is configured. */
export async function openPlaces({ blobFolder, blobBucket }: BlobPlacesConfig, log: Logger): Promise<BlobPlaces> {
  const folder = blobFolder === null ? null : folderPlace(blobFolder);
  const bucket = blobBucket === null ? null : await openBucket(blobBucket, log);
  return placesOf([bucket, folder].filter((place) => place !== null));
}

async function openBucket(config: BucketConfig, log: Logger): Promise<BlobPlace> {
  const { bucketPlace } = await import("./bucket.ts");
  return bucketPlace(config, (error) => log.warn({ reason: error.message }, "attachment bucket failed"));
}

/** New content is written to the first one. */
export function placesOf(places: readonly BlobPlace[]): BlobPlaces {
  return {
    preferred: places[0] ?? null,
    named(name) {
      const place = places.find((each) => each.name === name);
      if (place !== undefined) return place;
      const variable = name === "bucket" ? "PARLEY_BLOB_BUCKET" : "PARLEY_BLOB_DIR";
      throw new WireError("UNAVAILABLE", `the content is in a ${name}, but none is configured: set ${variable}`);
    },
  };
}
