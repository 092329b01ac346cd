// Models: fallbacks, context windows and prices.
import { z } from "zod";

/** Transient failures of a model. */
const retryFailures = ["rate_limit", "overloaded", "server", "connection", "stalled"] as const;

const Price = z.strictObject({
  /** US dollars per million tokens. */
  input: z.number().min(0),
  output: z.number().min(0),
  /** Omitted: same as `input`. */
  cache_read: z.number().min(0).optional(),
  /** For entries cached for five minutes. Omitted: 1.25 times `input`, as for every Claude model. */
  cache_write: z.number().min(0).optional(),
  /** For entries cached for one hour. Omitted: twice `input`, as for every Claude model. */
  cache_write_1h: z.number().min(0).optional(),
});

const ModelSettings = z.strictObject({
  /** Tokens of prompt and answer together; overrides the provider's value. */
  context_window: z.number().int().min(1_000).optional(),
  price: Price.optional(),
});

export const ModelsSettings = z
  .strictObject({
    /** Models to use in order when the previous one is overloaded, unreachable or out of credit; each stays for the rest of the turn. */
    fallback: z.array(z.string()).default([]),
    /** Failed attempts of one model before the next one is used. */
    fallback_after: z.number().int().min(1).max(8).default(3),
    retry: z
      .strictObject({
        /** Maximum calls of one model, including the first. */
        tries: z.number().int().min(1).max(20).default(8),
        /** Wait before the second try; doubled for each further try, plus up to 20 % jitter. */
        base_seconds: z.number().min(0.01).max(600).default(2),
        /** The longest wait. If a provider requests a longer one, the call fails. */
        max_seconds: z.number().min(0.01).max(3_600).default(60),
        /** Failures that are retried: 429, 529, other 5xx, a lost connection, a stalled stream. Others are never retried. */
        on: z.array(z.enum(retryFailures)).default([...retryFailures]),
      })
      .prefault({}),
    /** How much of its thinking Claude returns: short progress updates, a summary, or nothing. */
    thinking_display: z.enum(["updates", "summarized", "omitted"]).default("updates"),
    /**
     * Claude's endpoint accepts examples of a tool's arguments as a separate field; otherwise the tool's description contains them.
     * Omitted: only Anthropic's own API accepts them.
     */
    input_examples: z.boolean().optional(),
    /** By model id, without provider prefix. */
    known: z.record(z.string(), ModelSettings).default({}),
  })
  .prefault({});
export type ModelsSettings = z.infer<typeof ModelsSettings>;
