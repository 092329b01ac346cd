// Where large content is kept outside of the database: as objects, each written once under a name that is used once.

/** Content on its way into a place. */
interface BlobSource {
  /** The name: begins with the content's hash, and no other object ever has it. */
  object: string;
  sha256: string;
  bytes: number;
  /** From its beginning, as often as asked for. */
  readonly chunks: () => AsyncIterable<Uint8Array>;
}

export interface BlobPlace {
  readonly name: "folder" | "bucket";
  /** Visible whole or not at all. Throws UNAVAILABLE where the place is away. */
  write(source: BlobSource): Promise<void>;
  /** Null when the place does not have it; fewer bytes than asked for when it is shorter. */
  read(object: string, offset: number, length: number): Promise<Uint8Array | null>;
  /** Nothing happens when it is not there. Where it throws, the object may be removed at any time later. */
  remove(object: string): Promise<void>;
}

/** Where this store keeps large content, and where it finds what it has kept before. */
export interface BlobPlaces {
  /** What large content goes to from now on; null: the database. */
  readonly preferred: BlobPlace | null;
  /** The place a row names. Throws UNAVAILABLE where this store has no such place. */
  named(name: string): BlobPlace;
}

/** A bucket of a server that speaks S3. */
export interface BucketConfig {
  bucket: string;
  /** Null: Amazon's, by the region. */
  endpoint: string | null;
  region: string;
  /** The bucket stands in the path, not in the host name. */
  pathStyle: boolean;
  /** Before each key; empty, or it ends with a slash. */
  prefix: string;
  /** Null: what the machine has, by the SDK's own rules (a role of the instance, of the pod, a profile). */
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | null;
}
