// Fetches the files of stored messages from their platforms, under a claim in the store: the replica that stored a message immediately, any
// other one when that claim has expired. It completes the message with the files, or with notes for those that cannot be fetched.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { faultPoint, type Logger } from "@parley/chassis";
import { errorMessage, store, WireError } from "@parley/contracts";
import { FairSemaphore } from "@parley/kit";
import type { ChannelAdapter } from "../channels/channel.ts";
import { fileTimes, missingFile, storedFile, unfetchedText, type FilePart, type PendingFile } from "./attachments.ts";

export interface FileFetcherDeps {
  bus: Bus;
  log: Pick<Logger, "warn">;
  /** The largest accepted file. */
  maxBytes: number;
}

/** Messages whose files are fetched at the same time: their content is in memory, and webhooks are acknowledged meanwhile. */
const concurrent = 2;
const sweepEveryMs = 4_000;
const renewEveryMs = 2_000;
/** Timeout for one attempt to fetch one file. */
const fetchTimeoutMs = 60_000;
/** Pauses before the second and the third attempt. */
const retryPausesMs = [250, 1_000] as const;
/** Reserved before the time at which notes replace the files, to store those that have arrived. */
const completeMs = 10_000;

type Claimed = Pick<store.PendingFiles, "inboxId" | "channel" | "account" | "fence" | "dueInMs"> & {
  files: readonly PendingFile[];
};

export class FileFetcher {
  readonly #deps: FileFetcherDeps;
  readonly #adapters = new Map<string, ChannelAdapter>();
  readonly #permits = new FairSemaphore(concurrent);
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();

  constructor(deps: FileFetcherDeps) {
    this.#deps = deps;
  }

  /** Starts to look for messages that other replicas left incomplete. */
  open(): void {
    this.#keep(this.#sweep());
  }

  /** Also fetches the files of this account. */
  add(adapter: ChannelAdapter): void {
    if (adapter.fetchFile !== undefined) this.#adapters.set(`${adapter.channel}:${adapter.account}`, adapter);
  }

  /** Starts no further fetch for this account. */
  remove({ channel, account }: ChannelAdapter): void {
    this.#adapters.delete(`${channel}:${account}`);
  }

  /** Fetches the files of a message that this replica has just stored. */
  start(message: Pick<Claimed, "inboxId" | "channel" | "account" | "files">): void {
    this.#keep(this.#fetch({ ...message, fence: store.firstFileFence, dueInMs: fileTimes.dueMs }));
  }

  /** Stops all fetches and releases their claims. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("draining"));
    await Promise.all(this.#running);
  }

  #keep(work: Promise<void>): void {
    const kept = work.finally(() => this.#running.delete(kept));
    this.#running.add(kept);
  }

  async #sweep(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const accounts = [...this.#adapters.keys()];
      const free = concurrent - this.#permits.held - this.#permits.waiting;
      if (free > 0 && accounts.length > 0) {
        const claim = { accounts, ttlMs: fileTimes.claimMs, limit: free };
        // While the store is unavailable nothing can be claimed; the next sweep tries again.
        const found = await this.#deps.bus.request(store.fileClaim, claim, { signal }).catch(() => null);
        for (const message of found?.messages ?? []) this.#keep(this.#fetch(message));
      }
      await delay(sweepEveryMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #fetch(message: Claimed): Promise<void> {
    const { inboxId, fence } = message;
    const lost = new AbortController();
    const over = AbortSignal.any([this.#stop.signal, lost.signal]);
    const renewing = setInterval(() => void this.#renew(message, fileTimes.claimMs, lost), renewEveryMs);
    try {
      const release = await this.#permits.acquire(over);
      try {
        faultPoint("files.before_fetch");
        const parts = await this.#partsOf(message, over);
        over.throwIfAborted();
        faultPoint("files.before_complete");
        await this.#deps.bus.request(store.fileComplete, { inboxId, fence, parts });
      } finally {
        release();
      }
    } catch (error) {
      // Another replica claims the files when the claim has expired; at the drain it is released immediately.
      if (this.#stop.signal.aborted) await this.#renew(message, 0, lost);
      else if (!lost.signal.aborted) this.#warn(message, error, "files not stored: fetched again later");
    } finally {
      clearInterval(renewing);
    }
  }

  async #partsOf(message: Claimed, over: AbortSignal): Promise<FilePart[]> {
    const due = AbortSignal.timeout(Math.max(0, message.dueInMs - completeMs));
    const parts: FilePart[] = [];
    for (const file of message.files) {
      const content = await this.#contentOf(message, file, AbortSignal.any([over, due]));
      over.throwIfAborted();
      const { bus, maxBytes } = this.#deps;
      parts.push(content === null ? missingFile(file, unfetchedText) : await storedFile(bus, maxBytes, file, content));
    }
    return parts;
  }

  /** Null when it cannot be fetched. */
  async #contentOf(message: Claimed, file: PendingFile, signal: AbortSignal): Promise<Uint8Array | "too_large" | null> {
    const adapter = this.#adapters.get(`${message.channel}:${message.account}`);
    for (const pauseMs of [...retryPausesMs, null]) {
      if (signal.aborted || adapter?.fetchFile === undefined) return null;
      try {
        const timely = AbortSignal.any([signal, AbortSignal.timeout(fetchTimeoutMs)]);
        return await adapter.fetchFile(file.handle, this.#deps.maxBytes, timely);
      } catch (error) {
        if (pauseMs !== null) await delay(pauseMs, undefined, { signal }).catch(() => undefined);
        else this.#warn(message, error, "file not fetched from the platform");
      }
    }
    return null;
  }

  async #renew({ inboxId, fence }: Claimed, ttlMs: number, lost: AbortController): Promise<void> {
    try {
      await this.#deps.bus.request(store.fileRenew, { inboxId, fence, ttlMs }, { timeoutMs: renewEveryMs });
    } catch (error) {
      if (WireError.is(error, "FENCED")) lost.abort(error);
    }
  }

  #warn({ channel, account, inboxId }: Claimed, error: unknown, message: string): void {
    this.#deps.log.warn({ channel, account, inboxId, reason: errorMessage(error) }, message);
  }
}
