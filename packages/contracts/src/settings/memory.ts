// Memory: how notes and conversations are searched, and what is done with them beside.
import { z } from "zod";

const EmbedderSettings = z.strictObject({
  /** Base address: of an OpenAI-compatible server with its `/v1`, or of Ollama without. */
  url: z.url({ protocol: /^https?$/ }),
  model: z.string().min(1),
  /** `openai`: POST <url>/embeddings. `ollama`: POST <url>/api/embed. */
  api: z.enum(["openai", "ollama"]).default("openai"),
  /** Name of the environment variable with the key; left out: the server wants none. */
  key_env: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]*$/, "must be the NAME of an environment variable, such as OPENAI_API_KEY")
    .optional(),
  /** Texts of one request. */
  batch: z.number().int().min(1).max(256).default(32),
  /** How long a search waits for the question's vector; without it the words alone decide. */
  timeout_seconds: z.number().min(0.1).max(60).default(5),
});
export type EmbedderSettings = z.infer<typeof EmbedderSettings>;

export const MemorySettings = z
  .strictObject({
    /** A text search configuration of PostgreSQL (`\dF` lists them): which words are one word, and which are none. */
    language: z
      .string()
      .regex(/^[a-z][a-z0-9_]*$/, "must be the name of a text search configuration, such as english or simple")
      .default("english"),
    /** Searches what was said in conversations as well; each person's are found in that person's alone. */
    sessions: z.boolean().default(false),
    /** Found notes appended to what a person of the owner's conversations says, before the model is asked; 0 = none. */
    auto_recall: z.number().int().min(0).max(10).default(0),
    /** How much a note of today counts more than one without a date: 0.5 = half as much again, halved every 30 days. */
    recency_weight: z.number().min(0).max(2).default(0),
    /** How much a note in MEMORY.md counts more than others, in the same way. */
    importance_weight: z.number().min(0).max(2).default(0),
    /** Who turns texts into vectors; left out: words alone are searched. */
    embedder: EmbedderSettings.optional(),
  })
  .prefault({});
export type MemorySettings = z.infer<typeof MemorySettings>;
