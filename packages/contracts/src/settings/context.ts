// What the model is shown beside the conversation: documents, skills, where a message came from.
import { z } from "zod";

export const ContextSettings = z
  .strictObject({
    /** Characters of one document in the prompt; longer ones keep 70 % of it from the head and 20 % from the tail. */
    max_document_chars: z.number().int().min(1_000).default(20_000),
    /** Characters of all documents together; skills that are always shown have what is left of it. */
    max_documents_chars: z.number().int().min(1_000).default(150_000),
    /** Skills listed in the prompt, at most, and the characters of that list. */
    max_skills: z.number().int().min(0).default(150),
    max_skills_chars: z.number().int().min(0).default(30_000),
    /** Names the conversation a message came from. `auto`: where one thread has several, or the agent answers by `message`. */
    source_tags: z.enum(["auto", "always", "never"]).default("auto"),
    /** `text_only`: of past turns the model sees what was said, not the tools' traffic. */
    history: z.enum(["full", "text_only"]).default("full"),
    /** Memory notes of today and the day before in the prompt (memory/YYYY-MM-DD.md). */
    daily_notes: z.boolean().default(false),
  })
  .prefault({});
export type ContextSettings = z.infer<typeof ContextSettings>;
