// What runs in the namespace, read from `kubectl get … --output json`. Pure.
import { z } from "zod";

const Waiting = z.looseObject({ reason: z.string().optional(), message: z.string().optional() });
const ContainerStatus = z.looseObject({
  name: z.string(),
  image: z.string(),
  ready: z.boolean(),
  restartCount: z.number(),
  state: z.looseObject({ waiting: Waiting.optional() }).optional(),
});

const Pods = z.object({
  items: z.array(
    z.looseObject({
      metadata: z.looseObject({
        name: z.string(),
        labels: z.record(z.string(), z.string()).default({}),
        deletionTimestamp: z.string().optional(),
      }),
      spec: z.looseObject({
        containers: z.array(z.looseObject({ name: z.string(), image: z.string() })),
      }),
      status: z.looseObject({
        phase: z.string().optional(),
        podIP: z.string().optional(),
        conditions: z
          .array(z.looseObject({ type: z.string(), status: z.string(), message: z.string().optional() }))
          .default([]),
        containerStatuses: z.array(ContainerStatus).default([]),
        initContainerStatuses: z.array(ContainerStatus).default([]),
      }),
    }),
  ),
});

export interface Pod {
  name: string;
  /** The label `app.kubernetes.io/name`; null for a pod without a label of Parley. */
  app: string | null;
  /** The container of the service or server. */
  container: string;
  ip: string | null;
  isRunning: boolean;
  isReady: boolean;
  isDeleted: boolean;
  /** Restarts of all containers. */
  restarts: number;
  /** Why it is not scheduled or a container waits; empty when nothing is wrong. */
  waitsFor: { reason: string; message: string; image: string }[];
}

export function podsIn(json: string): Pod[] {
  return Pods.parse(JSON.parse(json)).items.map(({ metadata, spec, status }) => {
    const statuses = [...status.initContainerStatuses, ...status.containerStatuses];
    const unscheduled = status.conditions.find(
      ({ type, status: value }) => type === "PodScheduled" && value === "False",
    );
    return {
      name: metadata.name,
      app: metadata.labels["app.kubernetes.io/name"] ?? null,
      container: spec.containers[0]?.name ?? "",
      ip: status.podIP ?? null,
      isRunning: status.phase === "Running",
      isReady: status.conditions.some(({ type, status: value }) => type === "Ready" && value === "True"),
      isDeleted: metadata.deletionTimestamp !== undefined,
      restarts: statuses.reduce((sum, { restartCount }) => sum + restartCount, 0),
      waitsFor: [
        ...(unscheduled === undefined
          ? []
          : [{ reason: "Unschedulable", message: unscheduled.message ?? "", image: "" }]),
        ...statuses.flatMap(({ image, state }) =>
          state?.waiting === undefined
            ? []
            : [{ reason: state.waiting.reason ?? "", message: state.waiting.message ?? "", image }],
        ),
      ],
    };
  });
}

const imageReasons: ReadonlySet<string> = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "ErrImageInspect",
  "RegistryUnavailable",
]);

/** What no waiting helps against: images that no node has or can pull. Undefined without such a problem. */
export function missingImages(pods: readonly Pod[]): string | undefined {
  const missing = new Set(
    pods.flatMap(({ waitsFor }) => waitsFor.flatMap(({ reason, image }) => (imageReasons.has(reason) ? [image] : []))),
  );
  if (missing.size === 0) return undefined;
  const names = [...missing].sort();
  return (
    `the nodes do not have these images and cannot pull them: ${names.join(", ")}. Load them (kind: kind load docker-image ` +
    `${names[0]}), or name others with --image`
  );
}

const Workloads = z.object({
  items: z.array(
    z.looseObject({
      kind: z.string(),
      metadata: z.looseObject({ name: z.string(), generation: z.number().optional() }),
      spec: z.looseObject({ replicas: z.number().optional(), completions: z.number().optional() }),
      status: z
        .looseObject({
          observedGeneration: z.number().optional(),
          replicas: z.number().optional(),
          readyReplicas: z.number().optional(),
          updatedReplicas: z.number().optional(),
          succeeded: z.number().optional(),
        })
        .default({}),
    }),
  ),
});

/** The workloads that are not complete, such as `deployment store: 1 of 2 ready`. */
export function incomplete(json: string): string[] {
  return Workloads.parse(JSON.parse(json)).items.flatMap(({ kind, metadata, spec, status }) => {
    const name = `${kind.toLowerCase()} ${metadata.name}`;
    if (kind === "Job") return (status.succeeded ?? 0) >= (spec.completions ?? 1) ? [] : [`${name}: not complete`];
    const wanted = spec.replicas ?? 1;
    const { readyReplicas = 0, updatedReplicas = 0, replicas = 0, observedGeneration = 0 } = status;
    if (observedGeneration < (metadata.generation ?? 0)) return [`${name}: not seen yet`];
    if (readyReplicas >= wanted && updatedReplicas >= wanted && replicas === wanted) return [];
    return [`${name}: ${readyReplicas} of ${wanted} ready, ${updatedReplicas} updated, ${replicas} there`];
  });
}

/** One line for each pod that is not ready. */
export function describeWaiting(pods: readonly Pod[]): string[] {
  return pods
    .filter(({ isReady }) => !isReady)
    .map(({ name, isRunning, waitsFor, restarts }) => {
      const reasons = waitsFor.map(({ reason, message }) => `${reason}${message === "" ? "" : `: ${message}`}`);
      const state = reasons.length > 0 ? reasons.join("; ") : isRunning ? "runs and is not ready" : "is not running";
      return `${name}: ${state}${restarts > 0 ? ` (${restarts} restarts)` : ""}`;
    });
}
