// Observers: addresses that are told what happens in the sessions, and can neither change nor delay it.
import { z } from "zod";

const ObserverSettings = z.strictObject({
  /** Gets batches of session events by POST. */
  url: z.url({ protocol: /^https?$/ }),
  /** Variable of the gateway's environment whose value goes with the post, as a bearer token. */
  token_env: z
    .string()
    .regex(
      /^PARLEY_CHANNEL_[A-Z0-9_]+$/,
      "must be the name of an environment variable that begins with PARLEY_CHANNEL_",
    )
    .optional(),
  /** Events that may wait while a post is under way; what comes beyond is dropped and counted. */
  buffer: z.number().int().min(1).max(10_000).default(64),
  /** Also the pieces of a text as it is written. */
  deltas: z.boolean().default(false),
  timeout_seconds: z.number().min(0.1).max(60).default(5),
  /** Posts that may fail in a row; then it hears nothing for a while: 0.25 s at first, 15 s in the end. */
  max_failures: z.number().int().min(1).default(5),
});
export type ObserverSettings = z.infer<typeof ObserverSettings>;

export const ObserversSettings = z.array(ObserverSettings).default([]);
