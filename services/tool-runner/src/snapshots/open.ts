// Assembles file checkpoints: the recorder for calls, the subject that rewinds, and the periodic cleanup.
import type { Bus, Served } from "@parley/bus";
import type { Logger, ServiceMetrics } from "@parley/chassis";
import { checkpointRewind, toolProcesses } from "@parley/contracts";
import type { Workspaces } from "../workspace/workspaces.ts";
import { ContentStore } from "./content-store.ts";
import { startCollection } from "./collect.ts";
import { CheckpointRecorder, noCheckpoint, type Checkpoint, type CheckpointedCall } from "./recorder.ts";
import { Rewinder, rewindTimes, type RewindTimes } from "./rewind.ts";
import { createCheckpointClient } from "./checkpoint-client.ts";

export interface CheckpointConfig {
  enabled: boolean;
  /** Folder of the stored contents: the same for all replicas, outside the workspace. */
  folder: string;
  maxFileBytes: number;
}

export interface CheckpointOptions {
  config: CheckpointConfig;
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  workspaces: Pick<Workspaces, "main" | "take">;
  /** The process instance of this replica. */
  runner: string;
  faultPoint: (name: string) => void;
  times?: Partial<RewindTimes> | undefined;
}

export interface Checkpoints {
  /** The checkpoint of the user's turn that a call works for; the signal aborts its waits. */
  forCall(call: CheckpointedCall, signal: AbortSignal): Checkpoint;
  /** Accepts no more rewinds; running ones continue until the bus is drained. */
  close(): void;
}

/** How long a tool waits for a running rewind. */
const patienceMs = 30_000;
/** How long to wait for the replicas' lists of background processes. */
const gatherMs = 300;

export async function openCheckpoints(options: CheckpointOptions): Promise<Checkpoints> {
  const { config, bus, log, metrics, workspaces } = options;
  const blobs = new ContentStore(config.folder);
  const rows = createCheckpointClient(bus);
  const recorder = new CheckpointRecorder({
    workspace: workspaces.main,
    blobs,
    rows,
    maxFileBytes: config.maxFileBytes,
    patienceMs,
    faultPoint: options.faultPoint,
    onUntracked: (checkpointId, path, reason) => {
      metrics.count("parley_checkpoint_failures_total", { reason: "untracked" });
      log.info({ checkpointId, path, reason }, "file not captured: a rewind cannot restore it");
    },
    onFailure: (checkpointId, error) => {
      metrics.count("parley_checkpoint_failures_total", { reason: "failed" });
      log.warn({ checkpointId, err: error }, "files not captured: a rewind cannot restore them");
    },
  });
  const rewinder = new Rewinder({
    open: (id) => workspaces.take(id),
    blobs,
    rows,
    runner: options.runner,
    background: async (sessionId) => {
      const replicas = await bus.gather(toolProcesses, { sessionId }, gatherMs);
      const running = replicas.flatMap(({ processes }) => processes.filter(({ ended }) => ended === null));
      return { running: running[0]?.id, idle: replicas.map(({ replica }) => replica) };
    },
    times: { ...rewindTimes, ...options.times },
    faultPoint: options.faultPoint,
    onEnd: (sessionId, { checkpointId, counts }) => log.info({ sessionId, checkpointId, counts }, "files rewound"),
  });
  const stopping = new AbortController();
  startCollection(
    { rows, blobs },
    (went) => log.debug({ counts: went }, "content of old checkpoints removed"),
    (error) => log.warn({ err: error }, "content of old checkpoints not removed: retried in 6 hours"),
    stopping.signal,
  );
  const served: Served = bus.serve(checkpointRewind, (input) => rewinder.rewind(input));
  return {
    forCall: (call, signal) => (config.enabled ? recorder.forCall(call, signal) : noCheckpoint),
    close: () => {
      stopping.abort();
      served.close();
    },
  };
}
