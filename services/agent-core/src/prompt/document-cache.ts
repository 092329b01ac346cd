// Caches the documents that prompts contain. Reloads changed ones on a hint of the store and periodically, since hints can be lost.
// While the store is unavailable, the last loaded documents stay in use.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { documentChanged, rootDocuments, store, type DocumentMeta, type LineRange } from "@parley/contracts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import type { PromptDocument, PromptDocuments } from "./documents.ts";

/** Interval of the check for changes whose hint was lost. */
const defaultRecheckMs = 60_000;
const pageSize = 1_000;
/** Documents read at the same time. */
const parallelReads = 8;
/** How many of the newest daily notes are cached. */
const dailyNotesKept = 8;
/** Older versions cached for `at`. */
const olderKept = 64;
/** For a document from an older store version, which does not report untrusted lines: all of its lines count as untrusted. */
const unknownLines: readonly LineRange[] = [{ from: 1, to: Number.MAX_SAFE_INTEGER }];

export interface CacheOptions {
  /** Timeout of one request to the store. */
  timeoutMs: number;
  recheckMs?: number;
}

export class DocumentCache {
  readonly #leaderStore: LeaderStore;
  readonly #timeoutMs: number;
  readonly #known = new Map<string, DocumentMeta>();
  readonly #older = new Map<string, PromptDocument | null>();
  readonly #close: () => void;
  #position = 0;
  #documents: PromptDocuments | undefined;
  #refreshing: Promise<void> | undefined;
  #changed = false;

  /** Subscribes to change hints immediately; loads nothing before the first request or change. */
  constructor(
    bus: Bus,
    leaderStore: LeaderStore,
    log: Logger,
    { timeoutMs, recheckMs = defaultRecheckMs }: CacheOptions,
  ) {
    this.#leaderStore = leaderStore;
    this.#timeoutMs = timeoutMs;
    const look = () => {
      this.refresh().catch((error: unknown) =>
        log.warn({ err: error }, "documents not refreshed: the last loaded versions stay in use"),
      );
    };
    const subscription = bus.subscribe(documentChanged, {}, look);
    const timer = setInterval(look, recheckMs).unref();
    this.#close = () => {
      subscription.close();
      clearInterval(timer);
    };
  }

  close(): void {
    this.#close();
  }

  /**
   * The documents as last loaded. Waits, and throws WireError, only before the first successful load. The map is immutable: a
   * reload replaces it.
   */
  async current(): Promise<PromptDocuments> {
    if (this.#documents === undefined) await this.refresh();
    return this.#documents ?? new Map<string, PromptDocument>();
  }

  /** Resolves when all changes made before the call are loaded. Throws WireError if the store is unavailable. */
  refresh(): Promise<void> {
    this.#changed = true;
    this.#refreshing ??= this.#readUntilQuiet();
    return this.#refreshing;
  }

  /** The paths of all documents of the last load, also of those that no prompt contains. */
  paths(): string[] {
    return [...this.#known.values()].filter(({ deleted }) => !deleted).map(({ path }) => path);
  }

  /** The documents at these versions (see `versionsOf`), without those that no longer exist. */
  async at(versions: Readonly<Record<string, number>>): Promise<PromptDocuments> {
    const now = await this.current();
    const documents = await Promise.all(
      Object.entries(versions).map(async ([path, version]) => {
        const document = now.get(path);
        return document?.version === version ? document : this.#olderVersion(path, version);
      }),
    );
    return byPath(documents.filter((document) => document !== null));
  }

  async #readUntilQuiet(): Promise<void> {
    try {
      while (this.#changed) {
        this.#changed = false;
        await this.#listChanges();
        await this.#readChanged();
      }
    } finally {
      // Synchronous with the last check of `#changed`: a later call starts a new refresh.
      this.#refreshing = undefined;
    }
  }

  async #listChanges(): Promise<void> {
    for (;;) {
      const { documents, more } = await this.#leaderStore.request(
        store.documentList,
        { since: this.#position, limit: pageSize },
        { timeoutMs: this.#timeoutMs },
      );
      for (const document of documents) this.#known.set(document.path, document);
      this.#position = documents.at(-1)?.change ?? this.#position;
      if (!more) return;
    }
  }

  async #readChanged(): Promise<void> {
    const wanted = wantedPaths(this.paths());
    const had = this.#documents;
    const documents: PromptDocument[] = [];
    let isSame = had?.size === wanted.length;
    const work = async () => {
      for (let path = wanted.pop(); path !== undefined; path = wanted.pop()) {
        const kept = had?.get(path);
        const version = this.#known.get(path)?.version ?? 0;
        const isNewest = kept !== undefined && kept.version >= version && kept.untrusted !== unknownLines;
        const document = isNewest ? kept : await this.#read(path, undefined);
        if (kept !== undefined && document !== kept) this.#storeVersion(kept);
        if (document !== null) documents.push(document);
        isSame &&= document === kept;
      }
    };
    await Promise.all(Array.from({ length: parallelReads }, work));
    if (!isSame) this.#documents = byPath(documents);
  }

  async #read(path: string, version: number | undefined): Promise<PromptDocument | null> {
    const { document } = await this.#leaderStore.request(
      store.documentGet,
      { path, withUntrusted: true, ...(version === undefined ? {} : { version }) },
      { timeoutMs: this.#timeoutMs },
    );
    if (document === null || document.deleted) return null;
    return {
      path: document.path,
      version: document.version,
      content: document.content,
      untrusted: document.untrusted ?? unknownLines,
      turnId: document.turnId,
    };
  }

  async #olderVersion(path: string, version: number): Promise<PromptDocument | null> {
    const kept = this.#older.get(`${version} ${path}`);
    if (kept !== undefined) return kept;
    const document = await this.#read(path, version);
    this.#storeVersion(document ?? { path, version });
    return document;
  }

  /** Caches a replaced version for `at`. A version without content removed the document or never existed. */
  #storeVersion(document: PromptDocument | Pick<PromptDocument, "path" | "version">): void {
    this.#older.set(`${document.version} ${document.path}`, "content" in document ? document : null);
    const [oldest] = this.#older.keys();
    if (this.#older.size > olderKept && oldest !== undefined) this.#older.delete(oldest);
  }
}

/** The versions by path; stored with a session to know later which documents its model saw. */
export function versionsOf(documents: PromptDocuments): Record<string, number> {
  return Object.fromEntries([...documents.values()].map(({ path, version }) => [path, version]));
}

const dailyNote = /^memory\/\d{4}-\d{2}-\d{2}\.md$/;
const skillFile = /^skills\/[^/]+\/SKILL\.md$/;
const roots: ReadonlySet<string> = new Set(rootDocuments);

/** The paths that a prompt may contain. */
function wantedPaths(paths: readonly string[]): string[] {
  const notes = paths.filter((path) => dailyNote.test(path)).toSorted();
  return [...paths.filter((path) => roots.has(path) || skillFile.test(path)), ...notes.slice(-dailyNotesKept)];
}

function byPath(documents: readonly PromptDocument[]): PromptDocuments {
  return new Map(documents.toSorted((a, b) => (a.path < b.path ? -1 : 1)).map((document) => [document.path, document]));
}
