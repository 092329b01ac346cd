// Reports this replica's background processes to the store: their start, their exit, and which exits the model has seen.
// A report that fails is retried; processes that this instance never reports are marked lost by its successor or a peer (replica-monitor.ts).
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Bus } from "@parley/bus";
import { store, WireError } from "@parley/contracts";
import { abortable } from "@parley/kit";
import type { Logger } from "@parley/chassis";
import { formatExitNotice } from "./exit-notice.ts";
import type { BackgroundProcess, ProcessLedger } from "./processes.ts";
import type { ExecLimits } from "../sandbox/limits.ts";

export interface StoreSyncOptions {
  bus: Bus;
  log: Logger;
  /** `<replica>#<incarnation>`. */
  runner: string;
  /** The secret of this process instance: only this instance can report the exits of its processes. */
  key: string;
  limits: ExecLimits;
  /** A short label, for example `bubblewrap (no network, read-only system)`. */
  isolation: string;
}

/** Pause between retries while the store is unavailable. */
const pauseMs = 500;
/** How long a call waits until the store has recorded its process. */
const patienceMs = 3_000;
/** How long a call that waits for a process may take to show its exit to the model before the exit is announced. */
const watchedMs = 3_000;

export interface ProcessStoreSync extends ProcessLedger {
  /** Marks exits as reported: a call has shown them to the model, or nobody needs those of this runner (`own`). Never throws: at worst an exit is reported twice. */
  markReported(by: { grant: string } | "own", ids: readonly string[]): Promise<void>;
  /** Sends pending reports for at most `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export function createStoreSync({ bus, log, runner, key, limits, isolation }: StoreSyncOptions): ProcessStoreSync {
  const keyHash = createHash("sha256").update(key).digest("hex");
  const kept = new Map<string, Promise<boolean>>();
  const pending = new Set<Promise<unknown>>();
  const closing = new AbortController();
  const closed = new AbortController();

  /** Retries until the store responds; false when it rejects the request or the time is up. */
  const insist = async (processId: string, ask: () => Promise<unknown>): Promise<boolean> => {
    while (!closed.signal.aborted) {
      try {
        await ask();
        return true;
      } catch (error) {
        if (closed.signal.aborted) break;
        if (WireError.is(error, "UNAVAILABLE", "TIMEOUT")) {
          await delay(pauseMs, undefined, { signal: closed.signal, ref: false }).catch(() => undefined);
          continue;
        }
        log.warn({ err: error, processId }, "background process report rejected by the store");
        return false;
      }
    }
    return false;
  };
  const remember = <T>(work: Promise<T>): Promise<T> => {
    const entry = work.finally(() => pending.delete(entry));
    pending.add(entry);
    return entry;
  };
  const { signal } = closed;

  const announce = async (entry: BackgroundProcess, watched: boolean): Promise<void> => {
    if (watched) await delay(watchedMs, undefined, { signal: closing.signal }).catch(() => undefined);
    const known = await kept.get(entry.id);
    kept.delete(entry.id);
    const { id, end, timeoutSeconds } = entry;
    if (known !== true || end === undefined) return;
    const text = formatExitNotice({ ...entry, end }, { timeoutSeconds, limits, isolation });
    await insist(id, () => bus.request(store.processEnd, { id, key, text }, { signal }));
  };

  return {
    begun: async (entry) => {
      const { id, grant, notify, startedAt } = entry;
      const command = entry.command.slice(0, store.processCommandChars);
      const input = { grant, id, runner, keyHash, command, startedAt: startedAt.toISOString(), notify };
      const work = remember(insist(id, () => bus.request(store.processBegin, input, { signal })));
      kept.set(id, work);
      await abortable(work, AbortSignal.timeout(patienceMs)).catch(() => undefined);
    },
    ended: (entry, watched) => void remember(announce(entry, watched)),
    markReported: async (by, ids) => {
      if (ids.length === 0) return;
      const input = { by: by === "own" ? { key } : by, ids: [...ids] };
      const tell = bus.request(store.processTold, input, { timeoutMs: patienceMs });
      await tell.catch((error: unknown) =>
        log.warn({ err: error }, "process exit not marked as reported: it may be announced again"),
      );
    },
    close: async (graceMs) => {
      closing.abort();
      const timer = setTimeout(() => closed.abort(), graceMs);
      await Promise.allSettled(pending);
      clearTimeout(timer);
      closed.abort();
    },
  };
}
