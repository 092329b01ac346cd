// How requests end and how long they take.
import { WireError } from "@parley/contracts";

/** `refused`: with an error of the server; `unavailable`: nobody serves the subject, or there is no connection. */
export type RequestOutcome = "ok" | "refused" | "timeout" | "unavailable" | "cancelled";

const outcomes: Readonly<Record<string, RequestOutcome>> = {
  TIMEOUT: "timeout",
  UNAVAILABLE: "unavailable",
  CANCELLED: "cancelled",
};

/** Runs a request and reports its end, in seconds after its start. */
export async function measured<T>(
  report: ((outcome: RequestOutcome, seconds: number) => void) | undefined,
  request: () => Promise<T>,
): Promise<T> {
  if (report === undefined) return request();
  const startedAt = performance.now();
  const end = (outcome: RequestOutcome) => report(outcome, (performance.now() - startedAt) / 1_000);
  try {
    const output = await request();
    end("ok");
    return output;
  } catch (error) {
    end(WireError.is(error) ? (outcomes[error.code] ?? "refused") : "refused");
    throw error;
  }
}
