// Runs searches in separate threads, so that no pattern can block the service.
import { createWorkerPool, type WorkerPool } from "../worker/pool.ts";
import type { SearchAnswer, SearchJob } from "./job.ts";

export type Searcher = WorkerPool<SearchJob, SearchAnswer>;

const maxHeapMiB = 256;

export function createSearcher(): Searcher {
  return createWorkerPool(new URL("./search-thread", import.meta.url), maxHeapMiB);
}
