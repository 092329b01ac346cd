// The store operations for documents, as functions. It decides nothing.
import type { Bus } from "@parley/bus";
import { store, WireError, type DocumentMeta, type InputOf, type LineAuthors, type OutputOf } from "@parley/contracts";

export type StoredDocument = NonNullable<OutputOf<typeof store.callDocumentGet>["document"]>;

export interface DocumentStore {
  /** Changes after a position, including removals, in order. */
  changes(since: number): Promise<DocumentMeta[]>;
  /** Null when it does not exist. */
  get(path: string): Promise<StoredDocument | null>;
  /** Authors of the lines of one version; null when the store cannot provide them. */
  authors(path: string, version: number): Promise<LineAuthors | null>;
  put(input: Omit<InputOf<typeof store.callDocumentPut>, "grant">): Promise<OutputOf<typeof store.callDocumentPut>>;
}

const pageSize = 1_000;
/** Short, because every line counts as untrusted without an answer. */
const authorsTimeoutMs = 5_000;

/** Operations for one call: the store limits them to what the call's grant permits. */
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
        const { document } = await bus.request(
          store.callDocumentGet,
          { grant, path, version, withAuthors: true },
          { timeoutMs: authorsTimeoutMs },
        );
        return document?.lineAuthors ?? null;
      } catch (error) {
        if (WireError.is(error)) return null;
        throw error;
      }
    },
    put: (input) => bus.request(store.callDocumentPut, { grant, ...input }),
  };
}
