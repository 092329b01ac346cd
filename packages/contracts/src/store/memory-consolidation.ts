// Memory consolidation: what is new in the owner's notes and conversations, and applying a model's update to MEMORY.md. Content that
// is or may be derived from untrusted content never leaves the store for it, so that it cannot return as a fact.
import { z } from "zod";
import { UsageSchema } from "../messages.ts";
import { CostSchema } from "../turns.ts";
import { LineRangeSchema } from "./documents.ts";
import { Fenced, storeRequest } from "./shared.ts";

/** How far a note or a conversation has been consolidated. */
const ProgressSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("note"),
    path: z.string(),
    version: z.number().int().min(1),
    /** The last consolidated line of that version; null: all lines. */
    toLine: z.number().int().min(1).nullable(),
  }),
  z.object({
    kind: z.literal("conversation"),
    sessionId: z.uuid(),
    /** The last consolidated message of its log. */
    seq: z.number().int().min(1),
  }),
]);
export type MemoryProgress = z.infer<typeof ProgressSchema>;

const SourceSchema = z.object({
  /** The note, or `sessions/<id>`. */
  place: z.string(),
  /** YYYY-MM-DD, UTC; null: no date. */
  date: z.string().nullable(),
  /** `number` is the line number in a note, or the message's position in a conversation's log. */
  lines: z.array(z.object({ number: z.number().int(), text: z.string() })),
});
export type MemorySource = z.infer<typeof SourceSchema>;

export const memoryMaterial = storeRequest({
  subject: "store.memory.material",
  clients: ["agent-core"],
  doc: "Get MEMORY.md and the new material since the last consolidation: new lines of day notes and conversation notes, and the owner's messages in their own idle conversations; oldest first, as much as fits. Lines derived from untrusted content are left out; in MEMORY.md their text is null.",
  input: z.object({
    /** Approximate maximum characters of new material in one reply. */
    maxChars: z.number().int().min(500).max(100_000),
    /** Include conversations as well as notes. */
    conversations: z.boolean(),
  }),
  output: z.object({
    memory: z.object({
      /** 0: there is no MEMORY.md. */
      version: z.number().int(),
      lines: z.array(z.object({ text: z.string().nullable() })),
    }),
    /** Empty: nothing is new, or MEMORY.md is too long to be sent in full. */
    sources: z.array(SourceSchema),
    /** How far those sources go: sent back with the edit. */
    progress: z.array(ProgressSchema),
    /** MEMORY.md is above 128 KiB: people have to shorten it first. */
    tooLong: z.boolean(),
    /** All consolidation calls of this day (UTC), regardless of their outcome. */
    today: z.object({ calls: z.number().int(), cost: CostSchema }),
  }),
});

/** How a call ended. `failed`: no usable answer. `cancelled`: interrupted by new input. */
const OutcomeSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("edit"),
    /** Version of MEMORY.md that the model received. If it has changed, the edit is dropped and its material stays open. */
    expectedVersion: z.number().int().min(0),
    /** Lines to remove, from 1, inclusive, numbered as the model received them. */
    remove: z.array(LineRangeSchema).max(500),
    /** Lines to insert after a line, numbered as the model received them (0: at the beginning). */
    add: z.array(z.object({ after: z.number().int().min(0), text: z.string().min(1) })).max(500),
    /** Maximum characters of MEMORY.md afterwards; a longer one may only become shorter. */
    maxChars: z.number().int().min(500),
    progress: z.array(ProgressSchema).max(2_000),
  }),
  z.object({ kind: z.enum(["failed", "cancelled"]), reason: z.string().max(500) }),
]);

export const memoryConsolidate = storeRequest({
  subject: "store.memory.consolidate",
  clients: ["agent-core"],
  doc: "Record one consolidation call and its result in one commit: the new version of MEMORY.md, the progress of its material, and its cost for the day. Without an edit only the call is recorded.",
  input: z.object({
    ...Fenced,
    /** The model, by its provider's name. */
    model: z.string(),
    usage: UsageSchema,
    /** Null: unknown price. */
    costMicros: z.number().int().nonnegative().nullable(),
    outcome: OutcomeSchema,
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("saved"), version: z.number().int() }),
    /** `unchanged`: there was nothing to add; the material is done. `conflict`: MEMORY.md has changed in the meantime. */
    z.object({ status: z.enum(["unchanged", "conflict", "recorded"]) }),
    z.object({ status: z.literal("refused"), reason: z.string() }),
  ]),
});
