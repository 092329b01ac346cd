// Rows of file checkpoints and of rewinds. What the files held is the tool-runner's, under its hash.
import { z } from "zod";
import { KeptFileSchema, RewindReportSchema } from "../checkpoints.ts";
import { request } from "../contract.ts";
import { GrantToken } from "../grants.ts";
import { Secret } from "./calls.ts";
import { Empty } from "./shared.ts";

/** Files one request or reply carries: paths of full length then still fit the bus. */
export const checkpointPageFiles = 150;

/** A document as it stood: its version, 0 when there was none. Its content is in the store by that. */
const KeptDocumentSchema = z.object({ path: z.string(), version: z.number().int().nonnegative() });
export type KeptDocument = z.infer<typeof KeptDocumentSchema>;

/** The permission to carry out one rewind of one session, as `store.rewind.permit` gave it out. FORBIDDEN where it does not hold. */
const RewindPermit = z.object({ rewindId: z.uuid(), secret: Secret });
export type RewindPermit = z.infer<typeof RewindPermit>;

export const checkpointTrack = request({
  subject: "store.checkpoint.track",
  server: "store",
  clients: ["tool-runner"],
  doc: "Remember what stood at these paths before this user's turn, or this rewind, changed them. The first to say so for a path is believed. NOT_FOUND when there is no such turn or rewind. While another rewind is at work nothing is remembered, and `rewinding` says to ask again.",
  input: z.object({
    /** The call that is about to change the files: they belong to its user's turn. Or the rewind that is about to. */
    by: z.union([z.object({ grant: GrantToken }), z.object({ rewind: RewindPermit })]),
    files: z.array(KeptFileSchema).max(checkpointPageFiles),
  }),
  output: z.object({ rewinding: z.boolean() }),
});

export const checkpointList = request({
  subject: "store.checkpoint.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "The checkpoints of a session, newest first: turns that changed files, and rewinds.",
  input: z.object({ sessionId: z.uuid(), limit: z.number().int().min(1).max(200) }),
  output: z.object({
    checkpoints: z.array(
      z.object({
        /** To be given to `checkpoint.rewind` as `turnId`. */
        checkpointId: z.string(),
        kind: z.enum(["turn", "rewind"]),
        /** When the turn or the rewind began: ISO 8601, UTC. */
        at: z.string(),
        /** The first 80 characters of what the user said; of a rewind: empty. */
        text: z.string(),
        /** Paths it knows, documents and what could not be kept included. */
        files: z.number().int(),
      }),
    ),
  }),
});

export const checkpointFiles = request({
  subject: "store.checkpoint.files",
  server: "store",
  clients: ["tool-runner"],
  doc: "For a rewind: how each path stood before a turn or rewind, as far as it or anything after it in the session changed the path; in the order of paths, a page at a time. NOT_FOUND when the session has no such turn or checkpoint.",
  input: z.object({
    /** Names session and turn; its own checkpoint does not count. */
    rewind: RewindPermit,
    afterPath: z.string().nullable(),
  }),
  output: z.object({
    files: z.array(KeptFileSchema),
    /** With the first page: documents of the store that were changed, and their versions before. */
    documents: z.array(KeptDocumentSchema),
    more: z.boolean(),
  }),
});

export const checkpointUnreferenced = request({
  subject: "store.checkpoint.unreferenced",
  server: "store",
  clients: ["tool-runner"],
  doc: "Which of these hashes no checkpoint knows.",
  input: z.object({ sha256: z.array(z.string()).max(1000) }),
  output: z.object({ sha256: z.array(z.string()) }),
});

const RewindRef = { rewind: RewindPermit, fence: z.number().int() };

export const rewindPermit = request({
  subject: "store.rewind.permit",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Let a tool-runner carry out the rewind that a person wants: the answer goes with `checkpoint.rewind`, and holds for an hour. Requested again it answers another secret, and the former ones go on to hold.",
  input: z.object({ rewindId: z.uuid(), sessionId: z.uuid(), turnId: z.uuid() }),
  output: z.object({ secret: Secret }),
});

export const rewindDocument = request({
  subject: "store.rewind.document",
  server: "store",
  clients: ["tool-runner"],
  doc: "Put one document of `store.checkpoint.files` back: its version before becomes the newest one, with the authors that its lines had, or the document is removed where there was none. The version it had is kept in the rewind's checkpoint first. Without a fence it only answers what would happen. NOT_FOUND for a document that the rewind does not change. FENCED as for `store.rewind.renew`.",
  input: z.object({
    rewind: RewindPermit,
    /** Null: dry. */
    fence: z.number().int().nullable(),
    path: z.string().max(300),
  }),
  output: z.object({ outcome: z.enum(["restored", "removed", "unchanged"]) }),
});

export const rewindBegin = request({
  subject: "store.rewind.begin",
  server: "store",
  clients: ["tool-runner"],
  doc: "Own the workspace for a rewind, for `ttlMs` at a time; its own checkpoint is made with it. `busy`: another runner is at work on this or another one. A runner's name before `#` stays over its restarts: what an earlier life of it held is free. CONFLICT while a turn of the session or of its sub-agents runs; NOT_FOUND when the session has no such turn or checkpoint.",
  input: z.object({
    rewind: RewindPermit,
    runner: z.string(),
    ttlMs: z.number().int().positive(),
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("granted"), fence: z.number().int() }),
    z.object({ status: z.literal("busy") }),
    z.object({ status: z.literal("done"), report: RewindReportSchema }),
  ]),
});

export const rewindRenew = request({
  subject: "store.rewind.renew",
  server: "store",
  clients: ["tool-runner"],
  doc: "Go on owning the workspace for another `ttlMs`. FENCED when somebody else has taken the rewind over, or another one has begun.",
  input: z.object({ ...RewindRef, ttlMs: z.number().int().positive() }),
  output: Empty,
});

export const rewindEnd = request({
  subject: "store.rewind.end",
  server: "store",
  clients: ["tool-runner"],
  doc: "Write down what came of a rewind (null: it failed and may be asked for again), and give the workspace up. FENCED as for `store.rewind.renew`.",
  input: z.object({ ...RewindRef, report: RewindReportSchema.nullable() }),
  output: Empty,
});
