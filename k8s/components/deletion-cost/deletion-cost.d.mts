// The types of deletion-cost.mjs, for its test.

export declare const annotation: string;

export interface RunnerPod {
  name: string;
  ip: string;
  /** The value of the annotation. */
  cost: string | undefined;
}

export interface RunnerPods {
  list(): Promise<RunnerPod[]>;
  /** Null removes the annotation. */
  annotate(name: string, cost: string | null): Promise<void>;
}

export declare function commandsIn(metrics: string): number | undefined;

export declare function updateCosts(
  pods: RunnerPods,
  metricsOf: (ip: string) => Promise<string>,
): Promise<Map<string, number>>;

export declare function podsOf(api: { url: string; namespace: string; token: () => string }): RunnerPods;
