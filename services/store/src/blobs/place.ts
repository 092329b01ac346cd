// Where large content is kept outside of the database. A place knows content by its hash and nothing else.

export interface BlobPlace {
  readonly name: "folder" | "bucket";
  /** Keeps a content, also when it is there already. Visible whole or not at all. */
  write(sha256: string, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Null when the place does not have it. */
  read(sha256: string, offset: number, length: number): Promise<Uint8Array | null>;
  /** Nothing happens when it is not there. */
  remove(sha256: string): Promise<void>;
}
