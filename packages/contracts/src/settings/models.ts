// Models: who takes over, what they hold, what they cost.
import { z } from "zod";

/** Failures of a model that may be gone a moment later. */
const retryFailures = ["rate_limit", "overloaded", "server", "connection", "stalled"] as const;

const Price = z.strictObject({
  /** US dollars per million tokens. */
  input: z.number().min(0),
  output: z.number().min(0),
  /** Left out: as `input`. */
  cache_read: z.number().min(0).optional(),
  /** Of what is kept for five minutes. Left out: 1.25 times `input`, as every Claude model has it. */
  cache_write: z.number().min(0).optional(),
  /** Of what is kept for an hour. Left out: twice `input`, as every Claude model has it. */
  cache_write_1h: z.number().min(0).optional(),
});

const ModelSettings = z.strictObject({
  /** Tokens of prompt and answer together; wins over what the provider says. */
  context_window: z.number().int().min(1_000).optional(),
  price: Price.optional(),
});

export const ModelsSettings = z
  .strictObject({
    /** Models asked in turn when the one before is overloaded, unreachable or out of money; each stays for the rest of its turn. */
    fallback: z.array(z.string()).default([]),
    /** Tries of one model that does not answer properly before the next one is asked. */
    fallback_after: z.number().int().min(1).max(8).default(3),
    retry: z
      .strictObject({
        /** Calls of one model in all, the first included. */
        tries: z.number().int().min(1).max(20).default(8),
        /** Before the second try; doubled with each one after it, with up to 20 % on top. */
        base_seconds: z.number().min(0.01).max(600).default(2),
        /** The longest wait. A provider that asks for a longer one ends the call. */
        max_seconds: z.number().min(0.01).max(3_600).default(60),
        /** What is tried again: 429, 529, other 5xx, a lost connection, a silent one. Everything else never is. */
        on: z.array(z.enum(retryFailures)).default([...retryFailures]),
      })
      .prefault({}),
    /** What Claude shows of its thinking: short words on what it is doing, a summary, or nothing. */
    thinking_display: z.enum(["updates", "summarized", "omitted"]).default("updates"),
    /**
     * Claude's endpoint takes examples of a tool's arguments as such; else they stand in the tool's description. Left out: only
     * Anthropic's own address takes them.
     */
    input_examples: z.boolean().optional(),
    /** By model id, without the provider's prefix. */
    known: z.record(z.string(), ModelSettings).default({}),
  })
  .prefault({});
export type ModelsSettings = z.infer<typeof ModelsSettings>;
