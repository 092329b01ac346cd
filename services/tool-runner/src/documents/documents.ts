// The documents as the file tools see them: always the store's current state. Contents are cached and read again only when the
// version changes. It does not know tools.
import { createHash, randomUUID } from "node:crypto";
import {
  isPrivateDocument,
  WireError,
  type DocumentChange,
  type DocumentMeta,
  type LineAuthors,
  type ToolCallRequest,
} from "@parley/contracts";
import type { DocumentStore, StoredDocument } from "./client.ts";

/** Characters of cached contents; line authors take one more character per line. */
const maxKeptCharacters = 16 * 1024 * 1024;
/** Concurrent reads. */
const parallelReads = 8;
/** Attempts to apply a change: after a concurrent write, it is applied again to the new text. */
const maxTries = 5;

export interface Writer {
  /** The same for every run of this call. */
  idempotencyKey: string;
}

/** The changed text and the answer for it; `text` undefined: no change. */
export interface Edited<R> {
  text: string | undefined;
  answer: R;
}

interface CachedDocument {
  document: StoredDocument;
  /** Authors of its lines; undefined until requested, and while the store cannot provide them. */
  authors?: LineAuthors;
}

/** Cache shared by calls of the same audience. */
export class DocumentCache {
  readonly known = new Map<string, DocumentMeta>();
  readonly kept = new Map<string, CachedDocument>();
  keptCharacters = 0;
  position = 0;
}

export class Documents {
  readonly #store: DocumentStore;
  readonly #cache: DocumentCache;

  /** `store`: the store with the grant of one call. */
  constructor(store: DocumentStore, cache = new DocumentCache()) {
    this.#store = store;
    this.#cache = cache;
  }

  /** All documents, sorted by path. */
  async list(): Promise<DocumentMeta[]> {
    for (const each of await this.#store.changes(this.#cache.position)) {
      // Concurrent lists may finish in any order.
      if ((this.#cache.known.get(each.path)?.change ?? 0) < each.change) this.#cache.known.set(each.path, each);
      this.#cache.position = Math.max(this.#cache.position, each.change);
    }
    return [...this.#cache.known.values()].filter(({ deleted }) => !deleted).sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** Null when it does not exist. */
  async read(path: string): Promise<StoredDocument | null> {
    const document = await this.#store.get(path);
    if (document !== null) this.#keep(document);
    return document;
  }

  /** The contents of listed documents; documents removed meanwhile are left out. */
  async readAll(listed: readonly DocumentMeta[]): Promise<StoredDocument[]> {
    const read = new Map<string, StoredDocument>();
    const waiting = [...listed];
    const work = async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const document = this.#keptAt(next.path, next.version)?.document ?? (await this.read(next.path));
        if (document !== null) read.set(next.path, document);
      }
    };
    await Promise.all(Array.from({ length: parallelReads }, work));
    return listed.flatMap(({ path }) => read.get(path) ?? []);
  }

  /** The authors of a document's lines at the version read; "" when the store cannot provide them, so no line is trusted. */
  async authors({ path, version }: StoredDocument): Promise<LineAuthors> {
    const known = this.#keptAt(path, version)?.authors;
    if (known !== undefined) return known;
    const authors = await this.#store.authors(path, version);
    const kept = this.#keptAt(path, version);
    if (kept !== undefined && authors !== null) kept.authors = authors;
    return authors ?? "";
  }

  /** Replaces the whole text. Idempotent for the same call. */
  write(path: string, content: string, writer: Writer): Promise<DocumentChange> {
    return this.#store.put({ opId: operationId(writer.idempotencyKey), path, content });
  }

  /**
   * Edits the current text. After a concurrent write, the edit is applied again to the new text, so nothing is lost.
   * `missing`: the document does not exist; `busy`: every attempt met a concurrent write.
   */
  async edit<R>(
    path: string,
    change: (text: string, document: StoredDocument) => Promise<Edited<R>>,
  ): Promise<{ status: "answered"; answer: R } | { status: "missing" | "busy" }> {
    for (let tries = 1; tries <= maxTries; tries++) {
      const current = await this.read(path);
      if (current === null) return { status: "missing" };
      const { text, answer } = await change(current.content, current);
      if (text === undefined) return { status: "answered", answer };
      const saved = await this.#store.put({
        opId: randomUUID(),
        path,
        content: text,
        expectedVersion: current.version,
      });
      if (saved.status !== "conflict") return { status: "answered", answer };
    }
    return { status: "busy" };
  }

  /** Versions are immutable, so cached data of a version stays valid. */
  #keptAt(path: string, version: number): CachedDocument | undefined {
    const kept = this.#cache.kept.get(path);
    return kept?.document.version === version ? kept : undefined;
  }

  /** Caches a document and evicts the least recently read ones. */
  #keep(document: StoredDocument): void {
    const authors = this.#keptAt(document.path, document.version)?.authors;
    this.#cache.keptCharacters -= this.#cache.kept.get(document.path)?.document.content.length ?? 0;
    this.#cache.kept.delete(document.path);
    this.#cache.kept.set(document.path, { document, ...(authors === undefined ? {} : { authors }) });
    this.#cache.keptCharacters += document.content.length;
    for (const [path, kept] of this.#cache.kept) {
      if (this.#cache.keptCharacters <= maxKeptCharacters) return;
      this.#cache.kept.delete(path);
      this.#cache.keptCharacters -= kept.document.content.length;
    }
  }
}

/** A UUID derived from the call (version 8 of RFC 9562, custom). */
function operationId(key: string): string {
  const hex = createHash("sha256").update(`document ${key}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export type DocumentView = Pick<Documents, "list" | "read" | "readAll" | "authors" | "write" | "edit">;

export type DocumentCaller = Pick<ToolCallRequest, "audience">;

/**
 * The view of documents for one call: private documents are visible only in the owner's conversations. The store enforces the same by the
 * call's grant, and derives the author of new text from it.
 */
export function viewFor(documents: Documents, { audience = "owner" }: DocumentCaller): DocumentView {
  const hides = (path: string) => audience === "others" && isPrivateDocument(path);
  const refuse = () => {
    if (audience === "owner") return;
    throw new WireError("INVALID_INPUT", "documents can be changed only in the owner's conversations");
  };
  return {
    list: async () => (await documents.list()).filter(({ path }) => !hides(path)),
    read: async (path) => (hides(path) ? null : documents.read(path)),
    readAll: (listed) => documents.readAll(listed.filter(({ path }) => !hides(path))),
    authors: (document) => documents.authors(document),
    async write(path, content, writer) {
      refuse();
      return documents.write(path, content, writer);
    },
    async edit(path, change) {
      refuse();
      return documents.edit(path, change);
    },
  };
}
