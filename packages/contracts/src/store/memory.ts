// Memory: what is found again in the notes (MEMORY.md, memory/**) and in what was said. Who may see what is decided by the store,
// from the turn that asks.
import { z } from "zod";
import { request } from "../contract.ts";
import { documentAuthors, documentPathProblem } from "./documents.ts";
import { Empty, Fenced } from "./shared.ts";

/** The documents that are memory. */
export function isMemoryPath(path: string): boolean {
  return path === "MEMORY.md" || path.startsWith("memory/");
}

const MemoryPath = z.string().superRefine((path, context) => {
  const problem = isMemoryPath(path) ? documentPathProblem(path) : "memory is MEMORY.md and memory/….md";
  if (problem !== null) context.addIssue({ code: "custom", message: `"${path.slice(0, 300)}": ${problem}` });
});

/** Little-endian 32-bit floats, in base64. */
const Vector = z.base64();
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const MemoryHitSchema = z.object({
  source: z.enum(["document", "session"]),
  /** The document; of what was said `sessions/<id>`. */
  path: z.string(),
  /** From 1, inclusive: of the document, or of the message. */
  fromLine: z.number().int(),
  toLine: z.number().int(),
  text: z.string(),
  /** Of its lines' authors the one that is trusted least. */
  author: z.enum(documentAuthors),
  /** YYYY-MM-DD, UTC: when it was said, or the day the note is named after; null: of no day. */
  date: z.string().nullable(),
  /** Who said it; null for notes. */
  speaker: z.string().nullable(),
  /** Of what was said: its place in the session's log. */
  seq: z.number().int().nullable(),
  /** 0 to 1: the share of the question's words that it holds, rare ones counting more, or the likeness of the vectors. */
  score: z.number(),
});
export type MemoryHit = z.infer<typeof MemoryHitSchema>;

export const memorySearch = request({
  subject: "store.memory.search",
  server: "store",
  clients: ["agent-core"],
  doc: "What memory holds about a question, best first: in the owner's conversations the notes and what the owner's conversations said, in another person's what that person's said; in a group nothing. The index is brought up to date before it is asked.",
  input: z.object({
    /** Its root turn says whose memory it is. What was said in that turn is not found. */
    turnId: z.uuid(),
    query: z.string().max(8_000),
    limit: z.number().int().min(1).max(50),
    /** The question as a vector, and the model that made it; left out: words alone. */
    vector: z.object({ model: z.string(), values: Vector }).optional(),
  }),
  output: z.object({
    hits: z.array(MemoryHitSchema),
    /** Whose memory was searched. `none`: nobody's, as in a group. */
    audience: z.enum(["owner", "contact", "none"]),
  }),
});

export const memoryGet = request({
  subject: "store.memory.get",
  server: "store",
  clients: ["agent-core"],
  doc: "Lines of a note, with those that were written after reading what outsiders wrote. `refused` outside of the owner's conversations.",
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
      /** Of the first line in `lines`. */
      from: z.number().int(),
      lines: z.array(z.object({ text: z.string(), author: z.enum(documentAuthors) })),
      /** Of the whole note. */
      total: z.number().int(),
    }),
    z.object({ status: z.enum(["missing", "refused"]) }),
  ]),
});

const refusedOrMissing = z.object({ status: z.enum(["missing", "refused"]), reason: z.string() });

export const memoryAppend = request({
  subject: "store.memory.append",
  server: "store",
  clients: ["agent-core"],
  doc: "Adds lines to the end of a note, which is made with a first line where there is none. `author` is that of the lines alone; the version stays untrusted while lines of it are. TOO_LARGE above 256 KiB.",
  input: z.object({
    ...Fenced,
    turnId: z.uuid(),
    path: MemoryPath,
    /** Stands first in a note that is new. */
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

export const memoryForget = request({
  subject: "store.memory.forget",
  server: "store",
  clients: ["agent-core"],
  doc: "Removes lines of a note: a range, or each line that holds a text. The versions before stay in the history.",
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

export const memoryUnembedded = request({
  subject: "store.memory.unembedded",
  server: "store",
  clients: ["agent-core"],
  doc: "Texts of the index that have no vector of a model yet, newest first; each text once, whoever it belongs to.",
  input: z.object({ model: z.string(), limit: z.number().int().min(1).max(64) }),
  output: z.object({ texts: z.array(z.object({ sha256: Sha256, text: z.string() })) }),
});

export const memoryEmbed = request({
  subject: "store.memory.embed",
  server: "store",
  clients: ["agent-core"],
  doc: "Vectors of texts of the index, by the model that made them. One that is there already stays.",
  input: z.object({
    model: z.string(),
    vectors: z.array(z.object({ sha256: Sha256, values: Vector })).max(64),
  }),
  output: Empty,
});
