// Schemas of the gateway's job responses, and the path of a job.

import { controlHeartbeat, store } from "@parley/contracts";
import { z } from "zod";

import { UsageError } from "../errors.ts";

export const JobsAnswer = store.scheduleList.output;
export const JobAnswer = z.object({ job: store.ScheduleSchema });
export const RunAnswer = JobAnswer.extend({ messageId: z.string(), sessionId: z.string() });
export const RunsAnswer = store.scheduleHistory.output;
export const HeartbeatAnswer = controlHeartbeat.output;

/** The API path of the named job. */
export function jobPath(positionals: readonly string[], rest = ""): string {
  const [id] = positionals;
  if (id === undefined || id === "") throw new UsageError("Name a job; parley cron list shows them.");
  return `/api/schedules/${encodeURIComponent(id)}${rest}`;
}
