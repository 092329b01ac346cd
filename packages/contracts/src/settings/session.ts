// Which conversation belongs to which thread, and how long threads are kept.
import { z } from "zod";

export const SessionSettings = z
  .strictObject({
    /**
     * `singleton`: the owner's conversations on all channels are one thread. `per_conversation`: each chat is its own.
     * `named`: like `per_conversation`, and a chat moves between threads by `/session new|resume|fork`.
     */
    policy: z.enum(["singleton", "per_conversation", "named"]).default("singleton"),
    /** Archived and idle threads are deleted after so many days; 0 = never. The thread `main` never is. */
    retention_days: z.number().int().min(0).default(0),
    /** Threads kept beyond which the least recently used go; 0 = no limit. */
    max_sessions: z.number().int().min(0).default(0),
    /** Messages kept in one thread, beyond which the oldest that the model is not shown any more go; 0 = no limit. */
    max_messages: z.number().int().min(0).default(0),
  })
  .prefault({});
