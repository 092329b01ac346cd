// Attachments: what is taken in, how long what nobody refers to is kept, and who turns speech into text.
import { z } from "zod";

/** `image/png`, `image/*` or `*`. */
const TypePattern = z.string().regex(/^(\*|[\w.+-]+\/(\*|[\w.+-]+))$/, "a media type such as image/png, image/* or *");

const TranscriptionSettings = z.strictObject({
  /** Base of an API in OpenAI's format, with its `/v1`; `/audio/transcriptions` is added. */
  url: z.url({ protocol: /^https?$/ }),
  model: z.string().min(1),
  /** The environment variable with the key; left out: none is sent. */
  key_env: z
    .string()
    .regex(/^[A-Z_][A-Z0-9_]*$/)
    .optional(),
  /** ISO 639-1, where all speech is in one language; left out: the service finds out. */
  language: z
    .string()
    .regex(/^[a-z]{2}$/)
    .optional(),
  timeout_seconds: z.number().int().min(1).max(600).default(60),
});
export type TranscriptionSettings = z.infer<typeof TranscriptionSettings>;

export const AttachmentSettings = z
  .strictObject({
    /** The largest content that is kept. At most 64 MiB: a sender and a receiver hold it in memory. */
    max_bytes: z
      .number()
      .int()
      .min(1)
      .max(64 * 1024 * 1024)
      .default(20 * 1024 * 1024),
    /** Kinds that are kept, by what the first bytes say. */
    types: z.array(TypePattern).default(["*"]),
    /** How long content is kept that no session refers to (any more). */
    keep_hours: z.number().int().min(1).default(24),
    /** Left out: audio stays audio, and the agent is told that it cannot hear it. */
    transcription: TranscriptionSettings.optional(),
  })
  .prefault({});
export type AttachmentSettings = z.infer<typeof AttachmentSettings>;

/** Whether a type is among those that are let in. */
export function allowsType(patterns: readonly string[], mediaType: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === "*" ||
      pattern === mediaType ||
      (pattern.endsWith("/*") && mediaType.startsWith(pattern.slice(0, pattern.length - 1))),
  );
}
