// The documents as the file tools see them: always as the store has them now. What was read before is kept and read again
// only when its version is another one. It does not know tools.
import { createHash, randomUUID } from "node:crypto";
import type { DocumentChange, DocumentMeta, LineAuthors } from "@parley/contracts";
import type { DocumentStore, StoredDocument } from "./over-bus.ts";

/** Characters of the contents that are kept; whose the lines are comes on top, one for each. */
const maxKeptCharacters = 16 * 1024 * 1024;
/** Documents read at the same time. */
const parallelReads = 8;
/** Others may write between our look and our write; each time the change is made anew on what stands there by then. */
const maxTries = 5;

export interface Writer {
  /** The same for every run of this call. */
  idempotencyKey: string;
}

/** What a change makes of a text, and what is answered when that is what stands; undefined where it is left as it is. */
export interface Edited<R> {
  text: string | undefined;
  answer: R;
}

interface Kept {
  document: StoredDocument;
  /** Who wrote its lines; undefined until somebody asks, and while the store cannot say. */
  authors?: LineAuthors;
}

/** What calls of the same audience have read. */
export class DocumentCache {
  readonly known = new Map<string, DocumentMeta>();
  readonly kept = new Map<string, Kept>();
  keptCharacters = 0;
  position = 0;
}

export class Documents {
  readonly #store: DocumentStore;
  readonly #cache: DocumentCache;

  /** `store`: with the rights of one call. */
  constructor(store: DocumentStore, cache = new DocumentCache()) {
    this.#store = store;
    this.#cache = cache;
  }

  /** All there are, sorted by path. */
  async list(): Promise<DocumentMeta[]> {
    for (const each of await this.#store.changes(this.#cache.position)) {
      // Two looks at the same time may end in any order.
      if ((this.#cache.known.get(each.path)?.change ?? 0) < each.change) this.#cache.known.set(each.path, each);
      this.#cache.position = Math.max(this.#cache.position, each.change);
    }
    return [...this.#cache.known.values()].filter(({ deleted }) => !deleted).sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** Null when there is none. */
  async read(path: string): Promise<StoredDocument | null> {
    const document = await this.#store.get(path);
    if (document !== null) this.#keep(document);
    return document;
  }

  /** The contents of listed documents; one that was removed meanwhile is left out. */
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

  /** Who wrote which line of a document as it was read. Where the store cannot say it is nobody's, and so not trusted. */
  async authors({ path, version }: StoredDocument): Promise<LineAuthors> {
    const known = this.#keptAt(path, version)?.authors;
    if (known !== undefined) return known;
    const authors = await this.#store.authors(path, version);
    const kept = this.#keptAt(path, version);
    if (kept !== undefined && authors !== null) kept.authors = authors;
    return authors ?? "";
  }

  /** A whole new text, whatever stood there. Run again for the same call it changes nothing more. */
  write(path: string, content: string, writer: Writer): Promise<DocumentChange> {
    return this.#store.put({ opId: operationId(writer.idempotencyKey), path, content });
  }

  /**
   * Changes the text that stands there. When somebody else wrote meanwhile, the change is made again on what they wrote, so
   * nothing is lost. `missing` when there is no document, `busy` when others were faster each time.
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

  /** Versions never change: what is known of one stays true. */
  #keptAt(path: string, version: number): Kept | undefined {
    const kept = this.#cache.kept.get(path);
    return kept?.document.version === version ? kept : undefined;
  }

  /** The least recently read ones make room. */
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

/** A UUID that is the same for the same call (version 8, RFC 9562: of our own making). */
function operationId(key: string): string {
  const hex = createHash("sha256").update(`document ${key}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
