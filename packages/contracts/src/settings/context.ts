// Prompt content in addition to the conversation: documents, skills, sources of messages.
import { z } from "zod";

export const ContextSettings = z
  .strictObject({
    /** Maximum characters of one document in the prompt; of a longer one, the prompt contains 70 % of this from its head and 20 % from its tail. */
    max_document_chars: z.number().int().min(1_000).default(20_000),
    /** Maximum characters of all documents together; skills that are always shown use the rest. */
    max_documents_chars: z.number().int().min(1_000).default(150_000),
    /** Maximum skills listed in the prompt, and maximum characters of that list. */
    max_skills: z.number().int().min(0).default(150),
    max_skills_chars: z.number().int().min(0).default(30_000),
    /** Also list Parley's own skills (cron, github, skill-creator, summarize, weather), and add the tool `skill`, which loads a skill. */
    built_in_skills: z.boolean().default(false),
    /** Whether messages name their conversation. `auto`: if a thread has several, or the agent answers by `message`. */
    source_tags: z.enum(["auto", "always", "never"]).default("auto"),
    /** `text_only`: the prompt contains only the texts of past turns, not their tool calls and results. */
    history: z.enum(["full", "text_only"]).default("full"),
    /** Include the memory notes of today and yesterday in the prompt (memory/YYYY-MM-DD.md). */
    daily_notes: z.boolean().default(false),
  })
  .prefault({});
export type ContextSettings = z.infer<typeof ContextSettings>;
