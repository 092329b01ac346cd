// The numbers of PostgreSQL's advisory locks for the whole database. Two subjects with one number would wait for each other.
export const advisoryLocks = {
  /** Between writers of agent-core and a takeover; the functions `parley.enter` and `parley.put_message` take it too. */
  epoch: 7_305_510_218,
  /** Held while migrations are applied. */
  migration: 7_305_510_219,
  /** Held while expired data is deleted. */
  retention: 7_305_510_220,
  /** Held by each writer of documents until the commit. */
  documents: 7_305_510_221,
  /** Held while a rewind begins, so that two cannot begin at the same time. */
  rewind: 7_305_510_223,
  /** Held by each writer of the memory index until the commit. */
  memoryIndex: 7_305_510_224,
  /** Held by the replica that measures the cluster's figures. */
  figures: 7_305_510_240,
} as const;
