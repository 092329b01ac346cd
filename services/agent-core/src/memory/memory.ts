// Memory search for turns. The store searches; with an embedder, the query and new index entries are embedded here first. Without an
// embedder, or while it fails, the search uses text only.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { documentChanged, store, type InputOf, type OutputOf } from "@parley/contracts";
import { briefMs, type LeaderStore } from "../store-client/leader-store.ts";
import type { Embedder } from "./embedder.ts";

export type Recalled = OutputOf<typeof store.memorySearch>;

export interface MemoryOptions {
  bus: Bus;
  leaderStore: LeaderStore;
  log: Logger;
  /** Null: text search only. */
  embedder: Embedder | null;
}

/** Embedding new texts may take longer than embedding a query. */
const indexTimeoutMs = 60_000;
/** Maximum characters of a query that are embedded. */
const maxQuestionChars = 2_000;

export class Memory {
  readonly #options: MemoryOptions;
  readonly #close: () => void;
  readonly #closing = new AbortController();
  #embedding: Promise<void> | undefined;
  #failing = false;

  /** Subscribes to changed notes immediately. */
  constructor(options: MemoryOptions) {
    this.#options = options;
    const { bus, embedder } = options;
    const subscription =
      embedder === null ? undefined : bus.subscribe(documentChanged, {}, () => void this.#embedNew(embedder));
    this.#close = () => subscription?.close();
  }

  close(): void {
    this.#closing.abort();
    this.#close();
  }

  /** Results, best first. Throws WireError if the store is unavailable. */
  async search(turnId: string, query: string, limit: number, options: { timeoutMs?: number } = {}): Promise<Recalled> {
    const { leaderStore, embedder } = this.#options;
    const truncated = query.slice(0, 8_000);
    const vector = embedder === null ? undefined : await this.#vectorOf(embedder, truncated);
    const question = { turnId, query: truncated, limit, ...(vector === undefined ? {} : { vector }) };
    return leaderStore.request(store.memorySearch, question, options);
  }

  /** Undefined if the embedder failed or timed out. */
  async #vectorOf(embedder: Embedder, query: string): Promise<{ model: string; values: string } | undefined> {
    const over = AbortSignal.timeout(embedder.timeoutMs);
    const fresh = this.#embedNew(embedder);
    try {
      const [vector] = await embedder.embed([query.slice(0, maxQuestionChars) || " "], over);
      // After the timeout the search continues with the entries embedded so far.
      await Promise.race([
        fresh,
        delay(embedder.timeoutMs, undefined, { ref: false, signal: over }).catch(() => undefined),
      ]);
      return vector === undefined ? undefined : { model: embedder.model, values: base64Of(vector) };
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  /** Embeds all index entries without a vector; only one run at a time. Never rejects. */
  #embedNew(embedder: Embedder): Promise<void> {
    this.#embedding ??= (async () => {
      try {
        await this.#embedAll(embedder);
        this.#failing = false;
      } catch (error) {
        this.#failed(error);
      } finally {
        this.#embedding = undefined;
      }
    })();
    return this.#embedding;
  }

  async #embedAll(embedder: Embedder): Promise<void> {
    const { leaderStore } = this.#options;
    const { model } = embedder;
    const limit = Math.min(embedder.batch, 32);
    let vectors: InputOf<typeof store.memoryEmbed>["vectors"] = [];
    for (;;) {
      const { texts } = await leaderStore.request(store.memoryEmbed, { model, vectors, limit }, { timeoutMs: briefMs });
      if (texts.length === 0) return;
      const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(indexTimeoutMs)]);
      const embedded = await embedder.embed(
        texts.map(({ text }) => text),
        signal,
      );
      vectors = texts.map(({ sha256 }, index) => ({
        sha256,
        values: base64Of(embedded[index] ?? new Float32Array()),
      }));
    }
  }

  /** Logs a failure once, until the embedder works again. */
  #failed(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    if (!this.#failing) this.#options.log.warn({ err: error }, "embedding failed: memory search uses text only");
    this.#failing = true;
  }
}

/** Little-endian 32-bit floats, in base64. */
function base64Of(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
