// Attachments: accepted content, retention of unreferenced content, and transcription.
import { z } from "zod";

/** `image/png`, `image/*` or `*`. */
const TypePattern = z
  .string()
  .regex(/^(\*|[\w.+-]+\/(\*|[\w.+-]+))$/, "must be a media type such as image/png, image/* or *");

const TranscriptionSettings = z
  .strictObject({
    /** Base URL of an OpenAI-compatible API, including `/v1`; `/audio/transcriptions` is appended. Requires `model`. */
    url: z.url({ protocol: /^https?$/ }).optional(),
    model: z.string().min(1).optional(),
    /** The environment variable with the key; omitted: no key is sent. */
    key_env: z
      .string()
      .regex(/^[A-Z_][A-Z0-9_]*$/)
      .optional(),
    /** ISO 639-1 code, if all speech is in one language; omitted: the service detects it. */
    language: z
      .string()
      .regex(/^[a-z]{2}$/)
      .optional(),
    /**
     * Instead of `url`: a program of agent-core's machine and its arguments, without a shell. `{file}` is the path of the recording. The
     * program writes the transcript to its standard output. It gets PATH, HOME and LANG of its own, and no other variable.
     */
    command: z
      .array(z.string().min(1))
      .min(1)
      .refine(
        ([program = ""]) => !program.includes("/") || program.startsWith("/"),
        "use an absolute path, or a name on PATH",
      )
      .refine((words) => words.slice(1).some((word) => word.includes("{file}")), "an argument must contain {file}")
      .optional(),
    timeout_seconds: z.number().int().min(1).max(600).default(60),
  })
  .refine(({ command, url }) => (command === undefined) !== (url === undefined), "set either `command` or `url`")
  .refine(({ url, model }) => (url === undefined) === (model === undefined), "`model` belongs to `url`")
  .refine(
    ({ command, key_env, language }) => command === undefined || (key_env === undefined && language === undefined),
    "`key_env` and `language` require `url`",
  );
export type TranscriptionSettings = z.infer<typeof TranscriptionSettings>;

export const AttachmentSettings = z
  .strictObject({
    /** Maximum size of one content. At most 64 MiB, because sender and receiver hold it in memory. */
    max_bytes: z
      .number()
      .int()
      .min(1)
      .max(64 * 1024 * 1024)
      .default(20 * 1024 * 1024),
    /** Accepted media types, as detected from the first bytes. */
    types: z.array(TypePattern).default(["*"]),
    /** How long content without a reference from a session is kept. */
    keep_hours: z.number().int().min(1).default(24),
    /** Omitted: audio is not transcribed, and the prompt notes that the agent cannot listen to it. */
    transcription: TranscriptionSettings.optional(),
  })
  .prefault({});
export type AttachmentSettings = z.infer<typeof AttachmentSettings>;

/** Whether the patterns allow a media type. */
export function allowsType(patterns: readonly string[], mediaType: string): boolean {
  return patterns.some(
    (pattern) =>
      pattern === "*" ||
      pattern === mediaType ||
      (pattern.endsWith("/*") && mediaType.startsWith(pattern.slice(0, pattern.length - 1))),
  );
}
