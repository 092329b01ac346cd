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

/** MEMORY.md kept in order by a model while nobody has anything to say. */
const ConsolidationSettings = z
  .strictObject({
    /**
     * Minutes without a word from anybody after which the agent goes through what is new, unless it is at work; parts of a
     * minute count. 0 = never: it costs money that nobody has asked to spend, and changes a document that stands in every prompt.
     */
    idle_minutes: z.number().min(0).max(10_080).default(0),
    /** The model that is asked, best a cheap one; left out: the agent's own. */
    model: z.string().optional(),
    /** Calls of one day (UTC), failed ones included: what bounds a model whose price is not known. */
    max_calls_per_day: z.number().int().min(1).max(1_000).default(8),
    /** US dollars of one day (UTC) after which there is no further call; 0 = no limit. */
    max_usd_per_day: z.number().min(0).default(0.5),
    /** Characters that MEMORY.md may have after a consolidation. It stands in every prompt of the owner. */
    max_memory_chars: z.number().int().min(500).max(100_000).default(12_000),
    /** Characters of new material in one call; what is left waits for the next one. */
    max_material_chars: z.number().int().min(500).max(100_000).default(30_000),
    /** Takes in what the owner said in conversations of his own as well as the notes. */
    conversations: z.boolean().default(true),
  })
  .prefault({});

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
    consolidation: ConsolidationSettings,
  })
  .prefault({});
export type MemorySettings = z.infer<typeof MemorySettings>;
