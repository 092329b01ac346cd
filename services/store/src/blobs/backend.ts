// Interface of backends for large content outside of the database. Each object is written once, under a name that is never reused.

/** Content to write. */
interface BlobSource {
  /** The name: begins with the content's hash and is never reused. */
  object: string;
  sha256: string;
  bytes: number;
  /** Starts from the beginning on each call. */
  readonly chunks: () => AsyncIterable<Uint8Array>;
}

export interface BlobBackend {
  readonly name: "folder" | "bucket";
  /** Atomic: the object becomes visible as a whole. Throws UNAVAILABLE when the backend is unavailable. */
  write(source: BlobSource): Promise<void>;
  /** Null when the object does not exist; fewer bytes than requested when it is shorter. */
  read(object: string, offset: number, length: number): Promise<Uint8Array | null>;
  /** No effect when the object does not exist. If it throws, the object may still be removed at any later time. */
  remove(object: string): Promise<void>;
}

/** The backends for new and for existing large content. */
export interface BlobBackends {
  /** Backend for new large content; null: the database. */
  readonly preferred: BlobBackend | null;
  /** The backend of a row. Throws UNAVAILABLE when it is not configured. */
  named(name: string): BlobBackend;
}

/** A bucket of an S3-compatible server. */
export interface BucketConfig {
  bucket: string;
  /** Null: Amazon's endpoint of the region. */
  endpoint: string | null;
  region: string;
  /** The bucket is part of the path, not of the host name. */
  pathStyle: boolean;
  /** Prefix of each key; empty, or ends with a slash. */
  prefix: string;
  /** Null: the SDK's default credentials (role of the instance or pod, profile). */
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | null;
}
