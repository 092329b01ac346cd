// What the gateway answers about jobs, and which job a command means.

import { controlHeartbeat, store } from "@parley/contracts";
import { z } from "zod";

import { UsageError } from "../errors.ts";

export const JobsAnswer = store.scheduleList.output;
export const JobAnswer = z.object({ job: store.ScheduleSchema });
export const RunAnswer = JobAnswer.extend({ messageId: z.string(), sessionId: z.string() });
export const RunsAnswer = store.scheduleHistory.output;
export const HeartbeatAnswer = controlHeartbeat.output;

/** The path of the job that was named. */
export function jobPath(positionals: readonly string[], rest = ""): string {
  const [id] = positionals;
  if (id === undefined || id === "") throw new UsageError("Which job? parley cron list shows them.");
  return `/api/schedules/${encodeURIComponent(id)}${rest}`;
}
