// What the tool-runner asks of the store about documents, as plain functions. It does not decide anything.
import type { Bus } from "@parley/bus";
import { store, type DocumentMeta, type InputOf, type OutputOf } from "@parley/contracts";

export type StoredDocument = NonNullable<OutputOf<typeof store.documentGet>["document"]>;

export interface DocumentStore {
  /** What changed after a position, removals included, in the order of the changes. */
  changes(since: number): Promise<DocumentMeta[]>;
  /** Null when there is none. */
  get(path: string): Promise<StoredDocument | null>;
  put(input: InputOf<typeof store.documentPut>): Promise<OutputOf<typeof store.documentPut>>;
}

const pageSize = 1_000;

export function documentsOverBus(bus: Bus): DocumentStore {
  return {
    changes: async (since) => {
      const all: DocumentMeta[] = [];
      for (let cursor = since; ;) {
        const { documents, more } = await bus.request(store.documentList, { since: cursor, limit: pageSize });
        all.push(...documents);
        cursor = documents.at(-1)?.change ?? cursor;
        if (!more) return all;
      }
    },
    get: async (path) => (await bus.request(store.documentGet, { path })).document,
    put: (input) => bus.request(store.documentPut, input),
  };
}
