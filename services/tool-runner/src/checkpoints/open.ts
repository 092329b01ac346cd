// File checkpoints put together: what calls keep before they change files, the subject that puts it back, and who tidies up.
import type { Bus, Served } from "@parley/bus";
import { Counter, type Logger, type ServiceMetrics } from "@parley/chassis";
import { checkpointRewind, toolProcesses } from "@parley/contracts";
import type { TextWorker } from "../text/text-worker.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { Blobs } from "./blobs.ts";
import { keepTidy } from "./janitor.ts";
import { Keeper, noCheckpoint, type Checkpoint, type CheckpointedCall } from "./keeper.ts";
import { Rewinder, rewindTimes, type RewindTimes } from "./rewind.ts";
import { rowsOverBus } from "./rows.ts";

export interface CheckpointConfig {
  enabled: boolean;
  /** Where contents are kept: the same for all replicas, outside of the workspace. */
  folder: string;
  maxFileBytes: number;
}

export interface CheckpointOptions {
  config: CheckpointConfig;
  bus: Bus;
  log: Logger;
  metrics: ServiceMetrics;
  workspace: Workspace;
  textWorker: TextWorker;
  /** This life of this replica. */
  runner: string;
  /** An earlier content of this file was brought back. */
  onRestored?: (path: string) => Promise<void>;
  faultPoint: (name: string) => void;
  times?: Partial<RewindTimes> | undefined;
}

export interface Checkpoints {
  /** The checkpoint of the user's turn that a call works for; the signal ends its waiting. */
  forCall(call: CheckpointedCall, signal: AbortSignal): Checkpoint;
  /** Stops taking rewinds; those at work go on until the bus is drained. */
  close(): void;
}

/** How long a tool waits for a rewind that is at work. */
const patienceMs = 30_000;
/** How long the replicas have to say what they run in the background. */
const gatherMs = 300;

export async function openCheckpoints(options: CheckpointOptions): Promise<Checkpoints> {
  const { config, bus, log, metrics, workspace } = options;
  const blobs = new Blobs(config.folder);
  const rows = rowsOverBus(bus);
  const failures = new Counter({
    name: "parley_checkpoint_failures_total",
    help: "Files changed without having been kept, by reason",
    labelNames: ["reason"],
    registers: [metrics.registry],
  });
  const keeper = new Keeper({
    workspace,
    textWorker: options.textWorker,
    blobs,
    rows,
    maxFileBytes: config.maxFileBytes,
    patienceMs,
    faultPoint: options.faultPoint,
    onUntracked: (checkpointId, path, reason) => {
      failures.inc({ reason: "untracked" });
      log.info({ checkpointId, path, reason }, "a file is changed without having been kept");
    },
    onFailure: (checkpointId, error) => {
      failures.inc({ reason: "failed" });
      log.warn({ checkpointId, err: error }, "files are changed without having been kept");
    },
  });
  const rewinder = new Rewinder({
    workspace,
    blobs,
    rows,
    runner: options.runner,
    busy: async (sessionId) => {
      const replicas = await bus.gather(toolProcesses, { sessionId }, gatherMs);
      const running = replicas.flatMap(({ processes }) => processes.filter(({ ended }) => ended === null));
      return running[0] === undefined
        ? undefined
        : `the command ${running[0].id} of this session runs in the background and may change files`;
    },
    times: { ...rewindTimes, ...options.times },
    onRestored: options.onRestored,
    faultPoint: options.faultPoint,
    onEnd: (sessionId, { checkpointId, counts }) => log.info({ sessionId, checkpointId, counts }, "files were rewound"),
  });
  const stopping = new AbortController();
  keepTidy(
    { rows, blobs },
    (went) => log.debug(went, "content of old checkpoints removed"),
    (error) => log.warn({ err: error }, "content of old checkpoints not removed: tried again in six hours"),
    stopping.signal,
  );
  const served: Served = bus.serve(checkpointRewind, (input) => rewinder.rewind(input));
  return {
    forCall: (call, signal) => (config.enabled ? keeper.forCall(call, signal) : noCheckpoint),
    close: () => {
      stopping.abort();
      served.close();
    },
  };
}
