// Memory: search in notes and conversations, embeddings, and consolidation.
import { z } from "zod";

const EmbedderSettings = z.strictObject({
  /** Base URL of an OpenAI-compatible server, with `/v1`, or of Ollama, without it. */
  url: z.url({ protocol: /^https?$/ }),
  model: z.string().min(1),
  /** `openai`: POST <url>/embeddings. `ollama`: POST <url>/api/embed. */
  api: z.enum(["openai", "ollama"]).default("openai"),
  /** Name of the environment variable with the key; omitted: no key is sent. */
  key_env: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]*$/, "must be the NAME of an environment variable, such as OPENAI_API_KEY")
    .optional(),
  /** Maximum texts of one request. */
  batch: z.number().int().min(1).max(256).default(32),
  /** How long a search waits for the query's vector; after that it is a full-text search only. */
  timeout_seconds: z.number().min(0.1).max(60).default(5),
});
export type EmbedderSettings = z.infer<typeof EmbedderSettings>;

/** Consolidation: a model maintains MEMORY.md while all sessions are idle. */
const ConsolidationSettings = z
  .strictObject({
    /**
     * Minutes without input after which the agent consolidates new material, unless a turn runs; fractions of a minute count.
     * 0: never, because it costs money without a request and changes a document that is in every prompt.
     */
    idle_minutes: z.number().min(0).max(10_080).default(0),
    /** The model, preferably a cheap one; omitted: the agent's model. */
    model: z.string().optional(),
    /** Maximum calls per day (UTC), including failed ones; the only limit for a model without a known price. */
    max_calls_per_day: z.number().int().min(1).max(1_000).default(8),
    /** US dollars per day (UTC) after which there is no further call; 0: no limit. */
    max_usd_per_day: z.number().min(0).default(0.5),
    /** Maximum characters of MEMORY.md after a consolidation. Every prompt of the owner contains it. */
    max_memory_chars: z.number().int().min(500).max(100_000).default(12_000),
    /** Maximum characters of new material in one call; the rest waits for the next one. */
    max_material_chars: z.number().int().min(500).max(100_000).default(30_000),
    /** Include the owner's messages in their own conversations, in addition to notes. */
    conversations: z.boolean().default(true),
  })
  .prefault({});

export const MemorySettings = z
  .strictObject({
    /** A text search configuration of PostgreSQL (`\dF` lists them), which defines stemming and stop words. */
    language: z
      .string()
      .regex(/^[a-z][a-z0-9_]*$/, "must be the name of a text search configuration, such as english or simple")
      .default("english"),
    /** Search conversations as well; a person's conversations are found only in conversations of the same person. */
    sessions: z.boolean().default(false),
    /** Number of memory hits appended to each message of a person in the owner's conversations; 0: none. */
    auto_recall: z.number().int().min(0).max(10).default(0),
    /** Additional weight of a note of today: 0.5 adds half of its score, halved every 30 days. */
    recency_weight: z.number().min(0).max(2).default(0),
    /** Additional weight of notes in MEMORY.md: 0.5 adds half of their score. */
    importance_weight: z.number().min(0).max(2).default(0),
    /** The embedding service; omitted: only full-text search. */
    embedder: EmbedderSettings.optional(),
    consolidation: ConsolidationSettings,
  })
  .prefault({});
export type MemorySettings = z.infer<typeof MemorySettings>;
