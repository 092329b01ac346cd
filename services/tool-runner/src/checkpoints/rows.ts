// What checkpoints and rewinds ask of the store, as plain functions. It decides nothing.
import type { Bus } from "@parley/bus";
import { store, type InputOf, type KeptFile, type OutputOf } from "@parley/contracts";

export interface Rows {
  /** False while a rewind is at work: nothing was remembered, ask again. */
  track(checkpointId: string, files: readonly KeptFile[]): Promise<boolean>;
  files(input: Omit<InputOf<typeof store.checkpointFiles>, "afterPath">): Promise<KeptFile[]>;
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
        const { rewinding } = await bus.request(store.checkpointTrack, { checkpointId, files: page });
        if (rewinding) return false;
      }
      return true;
    },
    files: async (input) => {
      const files: KeptFile[] = [];
      for (;;) {
        const page = await bus.request(store.checkpointFiles, { ...input, afterPath: files.at(-1)?.path ?? null });
        files.push(...page.files);
        if (!page.more) return files;
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
