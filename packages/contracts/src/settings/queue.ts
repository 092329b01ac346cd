// What happens to a message that arrives while its thread is busy.
import { z } from "zod";

/**
 * `steer`: joins the running turn at the next model call or between two tools. `queue`: becomes the next turn. `coalesce`: waits for
 * further messages of the same sender and becomes one turn with them. `interrupt`: stops the running turn. `reject`: refused while busy.
 */
export const queueModes = ["steer", "queue", "coalesce", "interrupt", "reject"] as const;
export type QueueMode = (typeof queueModes)[number];

export const queueOrders = ["priority", "arrival"] as const;

export const QueueSettings = z
  .strictObject({
    mode: z.enum(queueModes).default("steer"),
    /** `coalesce`: how long a message waits for the next one of the same sender on the same route. */
    window_ms: z.number().int().min(0).max(60_000).default(1_500),
    /**
     * Which waiting input becomes the next turn. `priority`: people before sub-agents, webhooks, jobs and heartbeats. `arrival`: the
     * first that arrived.
     */
    order: z.enum(queueOrders).default("priority"),
    /** With `order = "priority"`: a waiting message gains one priority level per interval of this length, so that no message starves. */
    ageing_seconds: z.number().int().min(1).default(300),
  })
  .prefault({});
