// What happens to a message that comes in while its thread is busy.
import { z } from "zod";

/**
 * `steer`: joins the running turn at the next model call or between two tools. `queue`: becomes the next turn. `coalesce`: waits
 * for more of the same sender and becomes one turn with it. `interrupt`: stops the running turn. `reject`: is refused while busy.
 */
export const queueModes = ["steer", "queue", "coalesce", "interrupt", "reject"] as const;
export type QueueMode = (typeof queueModes)[number];

export const QueueSettings = z
  .strictObject({
    mode: z.enum(queueModes).default("steer"),
    /** `coalesce`: a message waits so long for the next one of the same sender on the same route. */
    window_ms: z.number().int().min(0).max(60_000).default(1_500),
    /** A waiting message gains one step of priority each time it has waited so long, so that nothing starves. */
    ageing_seconds: z.number().int().min(1).default(300),
  })
  .prefault({});
