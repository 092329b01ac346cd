// What the tool-runner asks of the store about documents, as plain functions. It does not decide anything.
import type { Bus } from "@parley/bus";
import { store, WireError, type DocumentMeta, type InputOf, type LineAuthors, type OutputOf } from "@parley/contracts";

export type StoredDocument = NonNullable<OutputOf<typeof store.callDocumentGet>["document"]>;

export interface DocumentStore {
  /** What changed after a position, removals included, in the order of the changes. */
  changes(since: number): Promise<DocumentMeta[]>;
  /** Null when there is none. */
  get(path: string): Promise<StoredDocument | null>;
  /** Who wrote which line of one version; null where the store cannot say. */
  authors(path: string, version: number): Promise<LineAuthors | null>;
  put(input: Omit<InputOf<typeof store.callDocumentPut>, "grant">): Promise<OutputOf<typeof store.callDocumentPut>>;
}

const pageSize = 1_000;
/** A store of an earlier version does not serve this; it has just answered, so it is not away. */
const authorsTimeoutMs = 5_000;

/** For one call, by its grant: the store shows and changes what the call may see and change. */
export function documentsOverBus(bus: Pick<Bus, "request">, grant: string): DocumentStore {
  return {
    changes: async (since) => {
      const all: DocumentMeta[] = [];
      for (let cursor = since; ;) {
        const { documents, more } = await bus.request(store.callDocumentList, {
          grant,
          since: cursor,
          limit: pageSize,
        });
        all.push(...documents);
        cursor = documents.at(-1)?.change ?? cursor;
        if (!more) return all;
      }
    },
    get: async (path) => (await bus.request(store.callDocumentGet, { grant, path })).document,
    authors: async (path, version) => {
      try {
        const said = await bus.request(
          store.callDocumentLines,
          { grant, path, version },
          { timeoutMs: authorsTimeoutMs },
        );
        return said.authors;
      } catch (error) {
        if (WireError.is(error)) return null;
        throw error;
      }
    },
    put: (input) => bus.request(store.callDocumentPut, { grant, ...input }),
  };
}
