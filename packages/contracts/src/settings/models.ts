// Models: who takes over, what they hold, what they cost.
import { z } from "zod";

const Price = z.strictObject({
  /** US dollars per million tokens. */
  input: z.number().min(0),
  output: z.number().min(0),
  cache_read: z.number().min(0).optional(),
  cache_write: z.number().min(0).optional(),
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
    /** By model id, without the provider's prefix. */
    known: z.record(z.string(), ModelSettings).default({}),
  })
  .prefault({});
export type ModelsSettings = z.infer<typeof ModelsSettings>;
