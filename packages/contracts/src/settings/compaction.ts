// Compaction: how a conversation is kept within the model's context window.
import { z } from "zod";

export const CompactionSettings = z
  .strictObject({
    /** Tried in order; each one is the fallback of the previous one. Empty: the conversation is never compacted. */
    strategies: z
      .array(z.enum(["summarize", "clear_tool_results", "trim"]))
      .default(["summarize", "clear_tool_results", "trim"]),
    /** Share of the usable window (the window without system prompt, tools and answer) at which to compact; 0: never. */
    trigger_share: z.number().min(0).max(1).default(0.75),
    /** Prompt tokens at which to compact, if reached before `trigger_share`; 0: none. */
    trigger_tokens: z.number().int().min(0).default(200_000),
    /** Finished turns since the last compaction at which to compact; 0: none. */
    trigger_turns: z.number().int().min(0).default(0),
    /** Messages at the beginning that are kept unchanged, unless they alone fill half of the usable window. */
    keep_first: z.number().int().min(0).default(0),
    /** Minimum messages at the end that are kept, unless the conversation would not fit in the window. */
    keep_last: z.number().int().min(0).default(6),
    /** Minimum turns at the end that are kept completely; 0: only `keep_last` and `keep_share` count. */
    keep_last_turns: z.number().int().min(0).default(0),
    /** Share of the usable window that the kept end may fill when size triggers the compaction; 0: only `keep_last` counts. */
    keep_share: z.number().min(0).max(1).default(0.2),
    /** Repeats the person's last request after the summary when it is not kept anyway. A running turn's is always repeated. */
    append_last_request: z.boolean().default(true),
    /** The model that writes the summary; omitted: the answering model with the same prefix, which uses its cache. */
    model: z.string().optional(),
    /** Prompts the model to save important facts to memory before its history is summarized. */
    memory_flush: z.boolean().default(false),
    /**
     * Compacts a thread after this idle time, while the provider's cache is warm, if it has at least half of the size that triggers a
     * compaction; 0: never.
     */
    idle_minutes: z.number().int().min(0).default(50),
    /** Above this number of messages the oldest are removed, regardless of a summary, down to three quarters of the number; 0: no limit. */
    max_messages: z.number().int().min(0).default(0),
  })
  .prefault({});
export type CompactionSettings = z.infer<typeof CompactionSettings>;
