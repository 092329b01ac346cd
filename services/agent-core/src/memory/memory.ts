// Memory as a turn asks it: the store searches; where there is an embedder, the question and what is new in the index get their
// vectors here first. Without one, or while it does not answer, words alone are searched.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { documentChanged, store, type OutputOf } from "@parley/contracts";
import type { Embedder } from "./embedder.ts";

export type Recalled = OutputOf<typeof store.memorySearch>;

export interface MemoryOptions {
  bus: Bus;
  log: Logger;
  /** Null: words alone. */
  embedder: Embedder | null;
}

/** A request of new texts may take longer than a question. */
const indexTimeoutMs = 60_000;
/** Characters of a question that are turned into a vector. */
const maxQuestionChars = 2_000;

export class Memory {
  readonly #options: MemoryOptions;
  readonly #close: () => void;
  readonly #closing = new AbortController();
  #embedding: Promise<void> | undefined;
  #failing = false;

  /** Listens for changed notes from now on. */
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

  /** Best first. Throws WireError when the store cannot be asked. */
  async search(turnId: string, query: string, limit: number, timeoutMs: number): Promise<Recalled> {
    const { bus, embedder } = this.#options;
    const asked = query.slice(0, 8_000);
    const vector = embedder === null ? undefined : await this.#vectorOf(embedder, asked);
    const question = { turnId, query: asked, limit, ...(vector === undefined ? {} : { vector }) };
    return bus.request(store.memorySearch, question, { timeoutMs });
  }

  /** Undefined when the embedder has not answered in time. */
  async #vectorOf(embedder: Embedder, query: string): Promise<{ model: string; values: string } | undefined> {
    const over = AbortSignal.timeout(embedder.timeoutMs);
    const fresh = this.#embedNew(embedder);
    try {
      const [vector] = await embedder.embed([query.slice(0, maxQuestionChars) || " "], over);
      // The search goes on with what has a vector by then.
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

  /** Gives every text of the index that has none its vector, once at a time. Never rejects. */
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
    const { bus } = this.#options;
    for (;;) {
      const limit = Math.min(embedder.batch, 32);
      const { texts } = await bus.request(store.memoryUnembedded, { model: embedder.model, limit });
      if (texts.length === 0) return;
      const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(indexTimeoutMs)]);
      const vectors = await embedder.embed(
        texts.map(({ text }) => text),
        signal,
      );
      await bus.request(store.memoryEmbed, {
        model: embedder.model,
        vectors: texts.map(({ sha256 }, index) => ({ sha256, values: base64Of(vectors[index] ?? new Float32Array()) })),
      });
    }
  }

  /** Said once, until it works again. */
  #failed(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    if (!this.#failing)
      this.#options.log.warn({ err: error }, "the embedder does not answer; memory is searched by words");
    this.#failing = true;
  }
}

/** Little-endian 32-bit floats, in base64. */
function base64Of(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}
