// Observers: URLs that receive session events and can neither change nor delay them.
import { z } from "zod";

const ObserverSettings = z.strictObject({
  /** Receives batches of session events by POST. */
  url: z.url({ protocol: /^https?$/ }),
  /** Variable of the gateway's environment whose value is sent as bearer token. */
  token_env: z
    .string()
    .regex(
      /^PARLEY_CHANNEL_[A-Z0-9_]+$/,
      "must be the name of an environment variable that begins with PARLEY_CHANNEL_",
    )
    .optional(),
  /** Maximum events that wait during a request; further events are dropped and counted. */
  buffer: z.number().int().min(1).max(10_000).default(64),
  /** Also send deltas of texts and arguments. */
  deltas: z.boolean().default(false),
  timeout_seconds: z.number().min(0.1).max(60).default(5),
  /** Consecutive failures after which sending pauses: 0.25 s at first, up to 15 s. */
  max_failures: z.number().int().min(1).default(5),
});
export type ObserverSettings = z.infer<typeof ObserverSettings>;

export const ObserversSettings = z.array(ObserverSettings).default([]);
