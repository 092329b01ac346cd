// The text thread: runs one job after the other and posts each result. `text-worker.ts` terminates it when a job takes too long.
import { parentPort } from "node:worker_threads";
import type { TextJob } from "./job.ts";
import { runTextJob } from "./run-job.ts";

parentPort?.on("message", (job: TextJob) => parentPort?.postMessage(runTextJob(job)));
