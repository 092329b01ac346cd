// What the samples of a scene say: pure functions.
import type { Sample } from "./clients.ts";

export interface SceneFigures {
  messages: number;
  /** Messages without the expected answer. */
  lost: string[];
  /** 95th percentiles of the time from the first attempt to the answer, by kind of client, in milliseconds. */
  p95BeforeMs: Record<Sample["kind"], number>;
  p95DuringMs: Record<Sample["kind"], number>;
  /** Requests that were repeated, as a share of all requests of OpenAI clients during the scene. */
  repeatedShare: number;
  /** Refused attempts by status, such as `503 with Retry-After` or `no response`. */
  refusals: Record<string, number>;
}

export function sceneFigures(before: readonly Sample[], during: readonly Sample[]): SceneFigures {
  const requests = during.filter(({ kind }) => kind === "openai");
  const refusals = requests.flatMap((sample) => sample.refusals);
  return {
    messages: during.length,
    lost: [...before, ...during].flatMap(({ kind, id, problem }) =>
      problem === null ? [] : [`${kind} ${id}: ${problem}`],
    ),
    p95BeforeMs: p95ByKind(before),
    p95DuringMs: p95ByKind(during),
    repeatedShare: requests.filter((sample) => sample.refusals.length > 0).length / Math.max(1, requests.length),
    refusals: countBy(
      refusals.map(({ status, hasRetryAfter }) =>
        status === null ? "no response" : `${status} ${hasRetryAfter ? "with" : "without"} Retry-After`,
      ),
    ),
  };
}

function p95ByKind(samples: readonly Sample[]): Record<Sample["kind"], number> {
  const of = (kind: Sample["kind"]) =>
    percentile(
      samples.flatMap((sample) =>
        sample.kind === kind && sample.answeredAtMs !== null ? [sample.answeredAtMs - sample.sentAtMs] : [],
      ),
      0.95,
    );
  return { openai: of("openai"), telegram: of("telegram") };
}

/** The value that this share of the values does not exceed, rounded; 0 without values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return Math.round(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0);
}

function countBy(names: readonly string[]): Record<string, number> {
  const groups = Object.groupBy(names, (name) => name);
  return Object.fromEntries(Object.entries(groups).map(([name, some]) => [name, some?.length ?? 0]));
}
