// What checkpoints and rewinds ask of the store, as plain functions. It decides nothing.
import { randomUUID } from "node:crypto";
import type { Bus } from "@parley/bus";
import { store, type InputOf, type KeptDocument, type KeptFile, type OutputOf } from "@parley/contracts";

export interface Rows {
  /** False while a rewind is at work: nothing was remembered, ask again. */
  track(checkpointId: string, files: readonly KeptFile[]): Promise<boolean>;
  trackDocument(checkpointId: string, document: KeptDocument): Promise<boolean>;
  files(
    input: Omit<InputOf<typeof store.checkpointFiles>, "afterPath">,
  ): Promise<{ files: KeptFile[]; documents: KeptDocument[] }>;
  /** A document's newest version, or the one that is named; null where that is none. */
  document(path: string, version?: number): Promise<{ version: number; content: string } | null>;
  /**
   * Brings an old version back, with the authors that its lines had, or removes the document (null), if `from` still is its newest
   * version (0: none). False where it is not.
   */
  putDocumentBack(path: string, version: number | null, from: number): Promise<boolean>;
  forget(olderThanDays: number): Promise<number>;
  unreferenced(sha256: readonly string[]): Promise<readonly string[]>;
  begin(input: InputOf<typeof store.rewindBegin>): Promise<OutputOf<typeof store.rewindBegin>>;
  renew(input: InputOf<typeof store.rewindRenew>): Promise<void>;
  end(input: InputOf<typeof store.rewindEnd>): Promise<void>;
}

export function rowsOverBus(bus: Bus): Rows {
  return {
    track: async (checkpointId, files) => {
      for (let from = 0; from < files.length; from += store.checkpointPageFiles) {
        const page = files.slice(from, from + store.checkpointPageFiles);
        const { rewinding } = await bus.request(store.checkpointTrack, { checkpointId, files: page, documents: [] });
        if (rewinding) return false;
      }
      return true;
    },
    trackDocument: async (checkpointId, document) => {
      const input = { checkpointId, files: [], documents: [document] };
      return !(await bus.request(store.checkpointTrack, input)).rewinding;
    },
    document: async (path, version) => {
      const { document } = await bus.request(store.documentGet, version === undefined ? { path } : { path, version });
      return document === null || document.deleted ? null : document;
    },
    putDocumentBack: async (path, version, from) => {
      // A removed document has a version too, so none can be named for what is not there.
      const change = { opId: randomUUID(), path, ...(from === 0 ? {} : { expectedVersion: from }) };
      const done =
        version === null
          ? // A person asked for it.
            await bus.request(store.documentDelete, { ...change, author: "owner" })
          : await bus.request(store.documentRestore, { ...change, version });
      return done.status !== "conflict";
    },
    files: async (input) => {
      const files: KeptFile[] = [];
      const documents: KeptDocument[] = [];
      for (;;) {
        const page = await bus.request(store.checkpointFiles, { ...input, afterPath: files.at(-1)?.path ?? null });
        files.push(...page.files);
        documents.push(...page.documents);
        if (!page.more) return { files, documents };
      }
    },
    forget: async (olderThanDays) => {
      for (let forgotten = 0; ;) {
        const page = await bus.request(store.checkpointForget, { olderThanDays });
        forgotten += page.forgotten;
        if (!page.more) return forgotten;
      }
    },
    unreferenced: async (sha256) => (await bus.request(store.checkpointUnreferenced, { sha256: [...sha256] })).sha256,
    begin: (input) => bus.request(store.rewindBegin, input),
    renew: async (input) => {
      await bus.request(store.rewindRenew, input);
    },
    end: async (input) => {
      await bus.request(store.rewindEnd, input);
    },
  };
}
