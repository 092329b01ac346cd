// Work on whole texts: small jobs at once, all others in threads of their own within a time of their own, so that no text and no
// argument of a call can hold the service up.
import { createWorkerPool } from "../worker/pool.ts";
import type { TextJob, TextJobKind, TextJobs } from "./job.ts";
import { runTextJob, workOf } from "./run-job.ts";

export interface TextWorker extends AsyncDisposable {
  /**
   * Rejects with TextJobError when the job needs too much time or memory, and with the signal's reason when that is aborted first.
   */
  run<Kind extends TextJobKind>(
    kind: Kind,
    input: TextJobs[Kind]["input"],
    signal: AbortSignal,
    deadlineMs?: number,
  ): Promise<TextJobs[Kind]["answer"]>;
}

/** A job was ended by a limit; the message is for the model. */
export class TextJobError extends Error {
  override readonly name = "TextJobError";
}

const jobDeadlineMs = 20_000;
const maxHeapMiB = 512;
/** Characters that are worked on without a thread: a few milliseconds for the worst of them, less than a thread needs to start. */
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
          throw new TextJobError(`Nothing was changed: it took longer than ${deadlineMs / 1_000} s. ${advice}`);
        }
        if (error instanceof Error && Reflect.get(error, "code") === "ERR_WORKER_OUT_OF_MEMORY") {
          throw new TextJobError(`Nothing was changed: it needed more than ${maxHeapMiB} MiB of memory. ${advice}`);
        }
        throw error;
      }
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
