// The text thread: runs one job and posts its result.
import { parentPort } from "node:worker_threads";
import type { TextJob } from "./job.ts";
import { runTextJob } from "./run-job.ts";

parentPort?.once("message", (job: TextJob) => parentPort?.postMessage(runTextJob(job)));
