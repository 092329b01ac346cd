// Mapping of conversations to threads, and retention of threads.
import { z } from "zod";

export const SessionSettings = z
  .strictObject({
    /**
     * `singleton`: the owner's direct conversations on all channels are one thread. `per_conversation`: one thread per chat.
     * `named`: like `per_conversation`, and a chat moves between threads by `/session new|resume|fork`.
     */
    policy: z.enum(["singleton", "per_conversation", "named"]).default("singleton"),
    /**
     * With `singleton`: further input that joins the owner's thread, each message as a turn of its own, with the rights of its sender.
     * `groups`: messages of listed groups. `users`: direct messages of people who are not owners. `webhooks`: deliveries of webhooks
     * without a `target`. These senders see answers that the model writes with the thread's history in view.
     */
    share: z.array(z.enum(["groups", "users", "webhooks"])).default([]),
    /**
     * Calls that wait for their answer and name no conversation or session: `parley run`, `--once`, `chat` in a pipe, `send --wait`,
     * `/v1/chat/completions` without `user`, `/v1/chat` without `session_id`. `own`: each call has its own session, regardless of the
     * policy. `shared`: the policy applies, so that under `singleton` they wait in the thread `main`. In both cases each call is its own turn.
     */
    synchronous: z.enum(["own", "shared"]).default("own"),
    /** Sessions of single calls are deleted after this many idle days; 0: never. */
    call_retention_days: z.number().int().min(0).default(30),
    /** Archived threads are deleted after this many idle days; 0: never. The thread `main` is never deleted. */
    retention_days: z.number().int().min(0).default(0),
    /** Maximum threads, not counting sub-agents; above it the least recently used idle threads are deleted; 0: no limit. */
    max_sessions: z.number().int().min(0).default(0),
    /** Maximum messages of one thread; above it the oldest messages outside the view are deleted; 0: no limit. */
    max_messages: z.number().int().min(0).default(0),
  })
  .prefault({});
