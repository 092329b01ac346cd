// Runs work on whole texts: small jobs inline, all others in worker threads with a deadline, so that no text or argument can
// block the service.
import { createWorkerPool } from "../worker/pool.ts";
import type { TextJob, TextJobKind, TextJobs } from "./job.ts";
import { runTextJob, workOf } from "./run-job.ts";

export interface TextWorker extends AsyncDisposable {
  /**
   * Rejects with TextJobError when the job exceeds its time or memory limit, and with the signal's reason when aborted first.
   */
  run<Kind extends TextJobKind>(
    kind: Kind,
    input: TextJobs[Kind]["input"],
    signal: AbortSignal,
    deadlineMs?: number,
  ): Promise<TextJobs[Kind]["answer"]>;
}

/** A job exceeded a limit; the message is for the model. */
export class TextJobError extends Error {
  override readonly name = "TextJobError";
}

const jobDeadlineMs = 20_000;
const maxHeapMiB = 512;
/** Work below this limit, in characters, runs inline: its worst case takes a few milliseconds, less than a thread's start. */
const smallWork = 16 * 1024;
const advice = "Make a smaller change, or use exec with a program such as sed.";

export function createTextWorker(): TextWorker {
  const pool = createWorkerPool<TextJob, TextJobs[TextJobKind]["answer"]>(
    new URL("./text-thread", import.meta.url),
    maxHeapMiB,
  );
  return {
    run: async <Kind extends TextJobKind>(
      kind: Kind,
      input: TextJobs[Kind]["input"],
      signal: AbortSignal,
      deadlineMs = jobDeadlineMs,
    ): Promise<TextJobs[Kind]["answer"]> => {
      const job = { kind, input } as TextJob;
      if (workOf(job) <= smallWork) return runTextJob(job);
      const deadline = AbortSignal.timeout(deadlineMs);
      try {
        return await pool.run(job, AbortSignal.any([signal, deadline]));
      } catch (error) {
        if (signal.aborted) throw error;
        if (deadline.aborted) {
          throw new TextJobError(`Nothing was changed: the change took longer than ${deadlineMs / 1_000} s. ${advice}`);
        }
        if (error instanceof Error && Reflect.get(error, "code") === "ERR_WORKER_OUT_OF_MEMORY") {
          throw new TextJobError(
            `Nothing was changed: the change needed more than ${maxHeapMiB} MiB of memory. ${advice}`,
          );
        }
        throw error;
      }
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
