// The store operations of checkpoints and rewinds, as functions. It decides nothing.
import type { Bus } from "@parley/bus";
import { store, type InputOf, type CapturedDocument, type CapturedFile, type OutputOf } from "@parley/contracts";

/** Who is about to change files: a call with its grant, or a rewind with its permit. */
type Tracker = InputOf<typeof store.checkpointTrack>["by"];

export interface CheckpointClient {
  /** Records captured files. False while another rewind is running: nothing was recorded, try again. */
  track(by: Tracker, files: readonly CapturedFile[]): Promise<boolean>;
  files(rewind: store.RewindPermit): Promise<{ files: CapturedFile[]; documents: CapturedDocument[] }>;
  /** Restores a document to its state before the rewound changes; `fence` null: only a preview. */
  putDocumentBack(
    rewind: store.RewindPermit,
    path: string,
    fence: number | null,
  ): Promise<OutputOf<typeof store.rewindDocument>["outcome"]>;
  unreferenced(sha256: readonly string[]): Promise<readonly string[]>;
  begin(input: InputOf<typeof store.rewindBegin>): Promise<OutputOf<typeof store.rewindBegin>>;
  update(input: InputOf<typeof store.rewindUpdate>): Promise<void>;
}

export function createCheckpointClient(bus: Bus): CheckpointClient {
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
      const files: CapturedFile[] = [];
      const documents: CapturedDocument[] = [];
      for (;;) {
        const page = await bus.request(store.checkpointFiles, { rewind, afterPath: files.at(-1)?.path ?? null });
        files.push(...page.files);
        documents.push(...page.documents);
        if (!page.more) return { files, documents };
      }
    },
    unreferenced: async (sha256) => (await bus.request(store.checkpointUnreferenced, { sha256: [...sha256] })).sha256,
    begin: (input) => bus.request(store.rewindBegin, input),
    update: async (input) => {
      await bus.request(store.rewindUpdate, input);
    },
  };
}
