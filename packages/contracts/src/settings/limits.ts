// Where a turn has had enough; 0 = no limit.
import { z } from "zod";

export const LimitSettings = z
  .strictObject({
    /** Model calls in one turn. */
    max_iterations: z.number().int().min(0).default(50),
    /** Tool calls in one turn. */
    max_tool_calls: z.number().int().min(0).default(200),
    /** Tokens of one turn, in and out, cached ones included. */
    max_tokens: z.number().int().min(0).default(0),
    /** US dollars of one turn, its sub-agents included. A model without a known price cannot be held to it. */
    max_usd: z.number().min(0).default(0),
    /** US dollars of one day (UTC), everything included. */
    max_usd_per_day: z.number().min(0).default(0),
    /** Wall time of one turn in seconds; what it waits for a person does not count. */
    max_turn_seconds: z.number().int().min(0).default(7_200),
    /** Rounds in a row that the loop goes on without a tool call (hooks, nudges, reprompts). */
    max_rounds_without_tools: z.number().int().min(0).default(16),
    /** The same call with the same result so often in a row: the model is warned at 3, the turn ends here. */
    max_repeated_calls: z.number().int().min(0).default(5),
  })
  .prefault({});
