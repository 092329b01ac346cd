// The heartbeat: the agent looks after what HEARTBEAT.md asks for, without being asked each time.
import { z } from "zod";

const dayTime = "(?:[01]\\d|2[0-3]):[0-5]\\d";

export const HeartbeatSettings = z
  .strictObject({
    /** Minutes between two heartbeats, on a grid of the clock; 0 = none. While HEARTBEAT.md asks for nothing there is none either. */
    every_minutes: z.number().int().min(0).max(1_440).default(30),
    /** Hours of the day, in `agent.time_zone`, in which it beats; the end may be before the beginning (over midnight), the same is the whole day. */
    active_hours: z
      .string()
      .regex(new RegExp(`^${dayTime}-(?:${dayTime}|24:00)$`), "must be two times of the day such as `08:00-22:00`")
      .default("08:00-22:00"),
    /** No heartbeat while the owner's thread runs, waits for somebody, or has something queued: it is alive. */
    skip_when_busy: z.boolean().default(true),
    /** An answer that is this, or begins or ends with it, means that there is nothing to say, and nothing is sent. */
    ok_token: z.string().min(1).max(64).default("HEARTBEAT_OK"),
  })
  .prefault({});
export type HeartbeatSettings = z.infer<typeof HeartbeatSettings>;
