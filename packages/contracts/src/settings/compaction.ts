// How a conversation is kept within the model's window.
import { z } from "zod";

export const CompactionSettings = z
  .strictObject({
    /** Tried in order; a later one is the backstop of those before it. */
    strategies: z
      .array(z.enum(["summarize", "clear_tool_results", "trim"]))
      .default(["summarize", "clear_tool_results", "trim"]),
    /** Share of the usable window (the window without system prompt, tools and answer) at which to compact; 0 = never. */
    trigger_share: z.number().min(0).max(1).default(0.75),
    /** Prompt tokens at which to compact, whichever comes first; 0 = none. */
    trigger_tokens: z.number().int().min(0).default(200_000),
    /** Turns since the last compaction at which to compact; 0 = none. */
    trigger_turns: z.number().int().min(0).default(0),
    /** Messages at the beginning that stay as they are. */
    keep_first: z.number().int().min(0).default(0),
    /** Messages at the end that stay, at least. */
    keep_last: z.number().int().min(0).default(6),
    /** Share of the usable window that the kept end may fill; 0: only `keep_last` counts. */
    keep_share: z.number().min(0).max(1).default(0.2),
    /** Repeats the person's last request after the summary. */
    append_last_request: z.boolean().default(true),
    /** The model that summarises; left out: the one that answers, on the same prefix, so that its cache is used. */
    model: z.string().optional(),
    /** Asks the model to write down what must not be forgotten before its history is summarised. */
    memory_flush: z.boolean().default(false),
    /** Compacts a thread that is half full and has been idle so long, while the provider's cache is warm; 0 = never. */
    idle_minutes: z.number().int().min(0).default(50),
    /** Messages beyond which the oldest are left out, summary or not; 0 = none. */
    max_messages: z.number().int().min(0).default(0),
  })
  .prefault({});
export type CompactionSettings = z.infer<typeof CompactionSettings>;
