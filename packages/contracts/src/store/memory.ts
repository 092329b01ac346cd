// Memory: search in notes (MEMORY.md, memory/**) and in conversations. The store derives the permission to read from the turn of the
// request.
import { z } from "zod";
import { documentAuthors, documentPathProblem } from "./documents.ts";
import { Fenced, storeRequest } from "./shared.ts";

/** The documents that are memory. */
export function isMemoryPath(path: string): boolean {
  return path === "MEMORY.md" || path.startsWith("memory/");
}

const MemoryPath = z.string().superRefine((path, context) => {
  const problem = isMemoryPath(path)
    ? documentPathProblem(path)
    : "memory documents are only MEMORY.md and memory/….md";
  if (problem !== null) context.addIssue({ code: "custom", message: `"${path.slice(0, 300)}": ${problem}` });
});

/** Little-endian 32-bit floats, in base64. */
const Vector = z.base64();
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const MemoryHitSchema = z.object({
  source: z.enum(["document", "session"]),
  /** The document, or `sessions/<id>` for a message. */
  path: z.string(),
  /** From 1, inclusive: line numbers in the document or in the message. */
  fromLine: z.number().int(),
  toLine: z.number().int(),
  text: z.string(),
  /** The least trusted author of its lines. */
  author: z.enum(documentAuthors),
  /** YYYY-MM-DD, UTC: the day of the message, or the day that the note is named after; null: no date. */
  date: z.string().nullable(),
  /** Author of the message; null for notes. */
  speaker: z.string().nullable(),
  /** Position of the message in the session's log; null for notes. */
  seq: z.number().int().nullable(),
  /** 0 to 1: the share of the query's words that it contains, weighted by rarity, or the similarity of the vectors. */
  score: z.number(),
});
export type MemoryHit = z.infer<typeof MemoryHitSchema>;

export const memorySearch = storeRequest({
  subject: "store.memory.search",
  clients: ["agent-core"],
  doc: "Search memory, best hits first. The owner's conversations search the notes and the owner's conversations; another person's conversations search that person's conversations; groups find nothing. The index is brought up to date before the search.",
  input: z.object({
    /** Its root turn determines whose memory is searched. Messages of that turn are not found. */
    turnId: z.uuid(),
    query: z.string().max(8_000),
    limit: z.number().int().min(1).max(50),
    /** The query's embedding and its model; omitted: only full-text search. */
    vector: z.object({ model: z.string(), values: Vector }).optional(),
  }),
  output: z.object({
    hits: z.array(MemoryHitSchema),
    /** Whose memory was searched. `none`: no memory, as in a group. */
    audience: z.enum(["owner", "contact", "none"]),
  }),
});

export const memoryGet = storeRequest({
  subject: "store.memory.get",
  clients: ["agent-core"],
  doc: "Get lines of a note with their authors, including untrusted lines. `refused` outside of the owner's conversations.",
  input: z.object({
    turnId: z.uuid(),
    path: MemoryPath,
    from: z.number().int().min(1),
    lines: z.number().int().min(1).max(2_000),
  }),
  output: z.discriminatedUnion("status", [
    z.object({
      status: z.literal("found"),
      path: z.string(),
      version: z.number().int(),
      /** Line number of the first element of `lines`. */
      from: z.number().int(),
      lines: z.array(z.object({ text: z.string(), author: z.enum(documentAuthors) })),
      /** Number of lines of the whole note. */
      total: z.number().int(),
    }),
    z.object({ status: z.enum(["missing", "refused"]) }),
  ]),
});

const refusedOrMissing = z.object({ status: z.enum(["missing", "refused"]), reason: z.string() });

export const memoryAppend = storeRequest({
  subject: "store.memory.append",
  clients: ["agent-core"],
  doc: "Append lines to a note, which is created with `heading` if it does not exist. `author` applies only to the new lines; the version is untrusted as long as any of its lines is. TOO_LARGE above 256 KiB.",
  input: z.object({
    ...Fenced,
    turnId: z.uuid(),
    path: MemoryPath,
    /** First line of a new note. */
    heading: z.string(),
    text: z.string().min(1),
    author: z.enum(["agent", "untrusted"]),
  }),
  output: z.discriminatedUnion("status", [
    z.object({
      status: z.literal("saved"),
      version: z.number().int(),
      fromLine: z.number().int(),
      toLine: z.number().int(),
    }),
    refusedOrMissing,
  ]),
});

export const memoryForget = storeRequest({
  subject: "store.memory.forget",
  clients: ["agent-core"],
  doc: "Remove lines of a note: a range, or each line that contains a text. Earlier versions stay in the history.",
  input: z.object({
    ...Fenced,
    turnId: z.uuid(),
    path: MemoryPath,
    what: z.discriminatedUnion("by", [
      z.object({ by: z.literal("lines"), from: z.number().int().min(1), to: z.number().int().min(1) }),
      z.object({ by: z.literal("text"), text: z.string().min(1) }),
    ]),
    author: z.enum(["agent", "untrusted"]),
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("saved"), version: z.number().int(), removed: z.array(z.string()) }),
    refusedOrMissing,
  ]),
});

export const memoryEmbed = storeRequest({
  subject: "store.memory.embed",
  clients: ["agent-core"],
  doc: "Store vectors of texts of the index, by model; an existing vector is not replaced. The reply lists texts that have no vector of the model yet, newest first, each text once.",
  input: z.object({
    model: z.string(),
    vectors: z.array(z.object({ sha256: Sha256, values: Vector })).max(64),
    /** Maximum texts of the reply. */
    limit: z.number().int().min(0).max(64),
  }),
  output: z.object({ texts: z.array(z.object({ sha256: Sha256, text: z.string() })) }),
});
