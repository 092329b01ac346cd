// Limits of turns, sessions and days; 0: no limit.
import { z } from "zod";

export const LimitSettings = z
  .strictObject({
    /** Maximum model calls of one turn. */
    max_iterations: z.number().int().min(0).default(50),
    /** Maximum tool calls of one turn. */
    max_tool_calls: z.number().int().min(0).default(200),
    /** Maximum tokens of one turn, input and output, including cached ones. */
    max_tokens: z.number().int().min(0).default(0),
    /** Maximum US dollars of one turn, including its sub-agents. Calls of a model without a known price do not count. */
    max_usd: z.number().min(0).default(0),
    /** Maximum model calls of one session, without its sub-agents. */
    max_iterations_per_session: z.number().int().min(0).default(0),
    /** Maximum US dollars of one session, including its sub-agents. */
    max_usd_per_session: z.number().min(0).default(0),
    /** Maximum US dollars of one day (UTC), for the whole deployment. */
    max_usd_per_day: z.number().min(0).default(0),
    /** Maximum wall-clock time of one turn in seconds, not counting time waiting for a person. */
    max_turn_seconds: z.number().int().min(0).default(7_200),
    /** Maximum consecutive rounds without a tool call (hooks, nudges, reprompts). */
    max_rounds_without_tools: z.number().int().min(0).default(16),
    /** Number of consecutive identical calls with identical results that ends the turn; the model gets a warning at 3. */
    max_repeated_calls: z.number().int().min(0).default(5),
  })
  .prefault({});
