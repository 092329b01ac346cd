// Counts and times the requests of the store.
import type { ServiceMetrics } from "@parley/chassis";
import { WireError } from "@parley/contracts";

/** Codes of failures that are no answer: a bug, or a database that cannot be reached. */
const failures: ReadonlySet<string> = new Set(["INTERNAL", "UNAVAILABLE", "TIMEOUT"]);

/** Runs a handler and records its outcome and duration under `verb`. */
export async function measured<T>(metrics: ServiceMetrics, verb: string, work: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  let outcome: "ok" | "refused" | "failed" = "ok";
  try {
    return await work();
  } catch (error) {
    outcome = WireError.is(error) && !failures.has(error.code) ? "refused" : "failed";
    throw error;
  } finally {
    const seconds = (performance.now() - startedAt) / 1_000;
    metrics.count("parley_store_requests_total", { verb, outcome });
    metrics.count("parley_store_verb_seconds_total", { verb }, seconds);
    metrics.observe("parley_store_request_seconds", seconds);
  }
}
