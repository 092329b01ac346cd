// Which conversation belongs to which thread, and how long threads are kept.
import { z } from "zod";

export const SessionSettings = z
  .strictObject({
    /**
     * `singleton`: the owner's conversations on all channels are one thread. `per_conversation`: each chat is its own.
     * `named`: like `per_conversation`, and a chat moves between threads by `/session new|resume|fork`.
     */
    policy: z.enum(["singleton", "per_conversation", "named"]).default("singleton"),
    /**
     * Calls that wait for their answer and name no conversation or session: `parley run`, `--once`, `chat` in a pipe, `send --wait`,
     * `/v1/chat/completions` without `user`, `/v1/chat` without `session_id`. `own`: each call has a session of its own, regardless of the
     * policy. `shared`: the policy applies, so that under `singleton` they wait in the thread `main`. Either way each is a turn of its own.
     */
    synchronous: z.enum(["own", "shared"]).default("own"),
    /** Sessions of single calls are deleted when they were idle for so many days; 0 = never. */
    call_retention_days: z.number().int().min(0).default(30),
    /** Archived threads are deleted when they were idle for so many days; 0 = never. The thread `main` never is. */
    retention_days: z.number().int().min(0).default(0),
    /** Threads kept, those of sub-agents not counted, beyond which the least recently used idle ones go; 0 = no limit. */
    max_sessions: z.number().int().min(0).default(0),
    /** Messages kept in one thread, beyond which the oldest that the model is not shown any more go; 0 = no limit. */
    max_messages: z.number().int().min(0).default(0),
  })
  .prefault({});
