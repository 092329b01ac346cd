// How a conversation is kept within the model's window.
import { z } from "zod";

export const CompactionSettings = z
  .strictObject({
    /** Tried in order; a later one is the backstop of those before it. None: the conversation is never compacted. */
    strategies: z
      .array(z.enum(["summarize", "clear_tool_results", "trim"]))
      .default(["summarize", "clear_tool_results", "trim"]),
    /** Share of the usable window (the window without system prompt, tools and answer) at which to compact; 0 = never. */
    trigger_share: z.number().min(0).max(1).default(0.75),
    /** Prompt tokens at which to compact, whichever comes first; 0 = none. */
    trigger_tokens: z.number().int().min(0).default(200_000),
    /** Finished turns since the last compaction at which to compact; 0 = none. */
    trigger_turns: z.number().int().min(0).default(0),
    /** Messages at the beginning that stay as they are, unless they alone fill half of the usable window. */
    keep_first: z.number().int().min(0).default(0),
    /** Messages at the end that stay, at least. They give way only when the window could not be kept otherwise. */
    keep_last: z.number().int().min(0).default(6),
    /** Turns at the end that stay whole, at least; 0: only `keep_last` and `keep_share` count. */
    keep_last_turns: z.number().int().min(0).default(0),
    /** Share of the usable window that the kept end may fill when the size is what compacts; 0: only `keep_last` counts. */
    keep_share: z.number().min(0).max(1).default(0.2),
    /** Repeats the person's last request after the summary when it is not kept anyway. A running turn's is always repeated. */
    append_last_request: z.boolean().default(true),
    /** The model that summarises; left out: the one that answers, on the same prefix, so that its cache is used. */
    model: z.string().optional(),
    /** Asks the model to write down what must not be forgotten before its history is summarised. */
    memory_flush: z.boolean().default(false),
    /**
     * Compacts a thread that has been idle so long, while the provider's cache is warm, once it has half of the size at which it
     * would be compacted; 0 = never.
     */
    idle_minutes: z.number().int().min(0).default(50),
    /** Messages beyond which the oldest are left out, summary or not, down to three quarters of the number; 0 = none. */
    max_messages: z.number().int().min(0).default(0),
  })
  .prefault({});
export type CompactionSettings = z.infer<typeof CompactionSettings>;
