// What checkpoints and rewinds ask of the store, as plain functions. It decides nothing.
import type { Bus } from "@parley/bus";
import { store, type InputOf, type KeptDocument, type KeptFile, type OutputOf } from "@parley/contracts";

/** What is about to change files: a call by its grant, or a rewind by its permit. */
type Tracker = InputOf<typeof store.checkpointTrack>["by"];

export interface Rows {
  /** For a call or for a rewind. False while another rewind is at work: nothing was remembered, try again. */
  track(by: Tracker, files: readonly KeptFile[]): Promise<boolean>;
  files(rewind: store.RewindPermit): Promise<{ files: KeptFile[]; documents: KeptDocument[] }>;
  /** Puts a document back as it was before the changes that are rewound; `fence` null: only what would happen. */
  putDocumentBack(
    rewind: store.RewindPermit,
    path: string,
    fence: number | null,
  ): Promise<OutputOf<typeof store.rewindDocument>["outcome"]>;
  unreferenced(sha256: readonly string[]): Promise<readonly string[]>;
  begin(input: InputOf<typeof store.rewindBegin>): Promise<OutputOf<typeof store.rewindBegin>>;
  renew(input: InputOf<typeof store.rewindRenew>): Promise<void>;
  end(input: InputOf<typeof store.rewindEnd>): Promise<void>;
}

export function rowsOverBus(bus: Bus): Rows {
  return {
    track: async (by, files) => {
      for (let from = 0; from < files.length; from += store.checkpointPageFiles) {
        const page = files.slice(from, from + store.checkpointPageFiles);
        const { rewinding } = await bus.request(store.checkpointTrack, { by, files: page });
        if (rewinding) return false;
      }
      return true;
    },
    putDocumentBack: async (rewind, path, fence) =>
      (await bus.request(store.rewindDocument, { rewind, path, fence })).outcome,
    files: async (rewind) => {
      const files: KeptFile[] = [];
      const documents: KeptDocument[] = [];
      for (;;) {
        const page = await bus.request(store.checkpointFiles, { rewind, afterPath: files.at(-1)?.path ?? null });
        files.push(...page.files);
        documents.push(...page.documents);
        if (!page.more) return { files, documents };
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
