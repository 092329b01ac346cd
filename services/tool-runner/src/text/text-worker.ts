// Runs work on whole texts: small jobs immediately, all others in a thread with limits, so that no text or argument can block the service.
import { runInThread, ThreadLimitError } from "../worker/run-in-thread.ts";
import type { TextJob, TextJobKind, TextJobs } from "./job.ts";
import { runTextJob, workOf } from "./run-job.ts";

/** A job exceeded a limit; the message is for the model. */
export class TextJobError extends Error {
  override readonly name = "TextJobError";
}

const jobTimeoutMs = 20_000;
const maxMemoryBytes = 512 * 1024 * 1024;
/** Work below this limit, in characters, runs immediately: its worst case takes a few milliseconds, less than a thread's start. */
const smallWork = 32 * 1024;

/** Rejects with TextJobError when the job exceeds its time or memory limit, and with the signal's reason when aborted first. */
export async function runOnText<Kind extends TextJobKind>(
  kind: Kind,
  input: TextJobs[Kind]["input"],
  signal: AbortSignal,
  timeoutMs = jobTimeoutMs,
): Promise<TextJobs[Kind]["answer"]> {
  const job = { kind, input } as TextJob;
  if (workOf(job) <= smallWork) return runTextJob(job);
  try {
    return await runInThread(new URL("./text-thread", import.meta.url), job, { timeoutMs, maxMemoryBytes }, signal);
  } catch (error) {
    if (!(error instanceof ThreadLimitError)) throw error;
    const excess =
      error.limit === "time"
        ? `took longer than ${timeoutMs / 1_000} s`
        : `needed more than ${maxMemoryBytes / 1024 / 1024} MiB of memory`;
    throw new TextJobError(
      `Nothing was changed: the change ${excess}. Make a smaller change, or use exec with a program such as sed.`,
    );
  }
}
