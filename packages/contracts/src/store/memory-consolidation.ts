// Consolidation of memory: what is new in the owner's notes and conversations, and taking what a model has made of it into
// MEMORY.md. What outsiders wrote, or had a hand in, never leaves the store for it, so that it cannot come back as a fact.
import { z } from "zod";
import { request } from "../contract.ts";
import { UsageSchema } from "../messages.ts";
import { CostSchema } from "../turns.ts";
import { LineRangeSchema } from "./documents.ts";
import { Fenced } from "./shared.ts";

/** How far a note or a conversation was taken in. */
const ProgressSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("note"),
    path: z.string(),
    version: z.number().int().min(1),
    /** The last line of that version that was taken in; null: all of them. */
    toLine: z.number().int().min(1).nullable(),
  }),
  z.object({
    kind: z.literal("conversation"),
    sessionId: z.uuid(),
    /** The last message of its log that was taken in. */
    seq: z.number().int().min(1),
  }),
]);
export type MemoryProgress = z.infer<typeof ProgressSchema>;

const SourceSchema = z.object({
  /** The note, or `sessions/<id>`. */
  place: z.string(),
  /** YYYY-MM-DD, UTC; null: of no day. */
  date: z.string().nullable(),
  /** Of a note the number is the line's, of a conversation the message's in its log. */
  lines: z.array(z.object({ number: z.number().int(), text: z.string() })),
});
export type MemorySource = z.infer<typeof SourceSchema>;

export const memoryMaterial = request({
  subject: "store.memory.material",
  server: "store",
  clients: ["agent-core"],
  doc: "MEMORY.md, and what has come since the last consolidation: new lines of day notes and conversation notes, and what the owner said in conversations of his own that have come to rest; oldest first, as much as fits. Lines that outsiders had a hand in are left out, in MEMORY.md their text is null.",
  input: z.object({
    /** Characters of the new material of one answer, about. */
    maxChars: z.number().int().min(500).max(100_000),
    /** Takes in conversations as well as notes. */
    conversations: z.boolean(),
  }),
  output: z.object({
    memory: z.object({
      /** 0: there is none. */
      version: z.number().int(),
      lines: z.array(z.object({ text: z.string().nullable() })),
    }),
    /** None: nothing is new, or MEMORY.md is too long to be shown whole. */
    sources: z.array(SourceSchema),
    /** How far those sources go: to be handed back with what was made of them. */
    progress: z.array(ProgressSchema),
    /** MEMORY.md is above 128 KiB: people have to shorten it first. */
    tooLong: z.boolean(),
    /** Calls of this day (UTC) for consolidation, whatever became of them. */
    today: z.object({ calls: z.number().int(), cost: CostSchema }),
  }),
});

/** How a call ended. `failed`: no usable answer. `cancelled`: somebody had something to say. */
const OutcomeSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("edit"),
    /** Of MEMORY.md, as it was shown; another one now: the edit is dropped, and its material waits. */
    expectedVersion: z.number().int().min(0),
    /** Lines that go, from 1, inclusive, as they were shown. */
    remove: z.array(LineRangeSchema).max(500),
    /** Lines that come behind a line as it was shown (0: at the beginning). */
    add: z.array(z.object({ after: z.number().int().min(0), text: z.string().min(1) })).max(500),
    /** Characters that MEMORY.md may have afterwards; a longer one may only become shorter. */
    maxChars: z.number().int().min(500),
    progress: z.array(ProgressSchema).max(2_000),
  }),
  z.object({ kind: z.enum(["failed", "cancelled"]), reason: z.string().max(500) }),
]);

export const memoryConsolidate = request({
  subject: "store.memory.consolidate",
  server: "store",
  clients: ["agent-core"],
  doc: "One call for consolidation and what it has led to, in one commit: the new version of MEMORY.md, how far its material went, and what it cost under its day. Without an edit only the call is kept.",
  input: z.object({
    ...Fenced,
    /** The model that was asked, as its provider spells it. */
    model: z.string(),
    usage: UsageSchema,
    /** Null: the price is not known. */
    costMicros: z.number().int().nonnegative().nullable(),
    outcome: OutcomeSchema,
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("saved"), version: z.number().int() }),
    /** `unchanged`: there was nothing to keep; the material is done with. `conflict`: MEMORY.md has changed meanwhile. */
    z.object({ status: z.enum(["unchanged", "conflict", "recorded"]) }),
    z.object({ status: z.literal("refused"), reason: z.string() }),
  ]),
});
