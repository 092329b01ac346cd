// The heartbeat: the agent regularly handles the tasks in HEARTBEAT.md.
import { z } from "zod";

const dayTime = "(?:[01]\\d|2[0-3]):[0-5]\\d";

export const HeartbeatSettings = z
  .strictObject({
    /** Minutes between two heartbeats, aligned to the clock; 0: none. There are no heartbeats while HEARTBEAT.md has no tasks. */
    every_minutes: z.number().int().min(0).max(1_440).default(30),
    /** Active hours in `agent.time_zone`. The end may be before the beginning (over midnight); equal times mean the whole day. */
    active_hours: z
      .string()
      .regex(new RegExp(`^${dayTime}-(?:${dayTime}|24:00)$`), "must be two times of the day such as `08:00-22:00`")
      .default("08:00-22:00"),
    /** No heartbeat while the owner's thread has a running or parked turn or queued input. */
    skip_when_busy: z.boolean().default(true),
    /** An answer that is, begins with or ends with this token means that there is nothing to report; it is not sent. */
    ok_token: z.string().min(1).max(64).default("HEARTBEAT_OK"),
  })
  .prefault({});
export type HeartbeatSettings = z.infer<typeof HeartbeatSettings>;
