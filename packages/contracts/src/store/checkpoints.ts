// Requests about file checkpoints and rewinds. The store has the rows; the tool-runner has the file contents, by hash.
import { z } from "zod";
import { CapturedFileSchema, RewindReportSchema } from "../checkpoints.ts";
import { GrantToken } from "../grants.ts";
import { Secret } from "./calls.ts";
import { Empty, storeRequest } from "./shared.ts";

/** Maximum number of files in one request or reply: with paths of maximum length they still fit in a bus message. */
export const checkpointPageFiles = 150;

/** The captured state of a document: its version, 0 when it did not exist. The store has the content of each version. */
const CapturedDocumentSchema = z.object({ path: z.string(), version: z.number().int().nonnegative() });
export type CapturedDocument = z.infer<typeof CapturedDocumentSchema>;

/** The permission to run one rewind of one session, issued by `store.rewind.permit`. Requests with an invalid one fail with FORBIDDEN. */
const RewindPermit = z.object({ rewindId: z.uuid(), secret: Secret });
export type RewindPermit = z.infer<typeof RewindPermit>;

export const checkpointTrack = storeRequest({
  subject: "store.checkpoint.track",
  clients: ["tool-runner"],
  doc: "Record the state of these paths before this user's turn, or this rewind, changed them. The first record of a path counts. NOT_FOUND when there is no such turn or rewind. While another rewind runs, nothing is recorded; `rewinding` tells the caller to retry.",
  input: z.object({
    /** What will change the files: a tool call, whose files are recorded for the user's turn, or a rewind. */
    by: z.union([z.object({ grant: GrantToken }), z.object({ rewind: RewindPermit })]),
    files: z.array(CapturedFileSchema).max(checkpointPageFiles),
  }),
  output: z.object({ rewinding: z.boolean() }),
});

export const checkpointList = storeRequest({
  subject: "store.checkpoint.list",
  clients: ["channel-gateway"],
  doc: "List the checkpoints of a session, newest first: turns that changed files, and rewinds.",
  input: z.object({ sessionId: z.uuid(), limit: z.number().int().min(1).max(200) }),
  output: z.object({
    checkpoints: z.array(
      z.object({
        /** Use it as `turnId` of `checkpoint.rewind`. */
        checkpointId: z.string(),
        kind: z.enum(["turn", "rewind"]),
        /** When the turn or the rewind began: ISO 8601, UTC. */
        at: z.string(),
        /** The first 80 characters of the user's message; empty for a rewind. */
        text: z.string(),
        /** Number of recorded paths, including documents and files that could not be captured. */
        files: z.number().int(),
      }),
    ),
  }),
});

export const checkpointFiles = storeRequest({
  subject: "store.checkpoint.files",
  clients: ["tool-runner"],
  doc: "For a rewind: get the state before a turn or rewind of each path that it or anything after it in the session changed, sorted by path, one page at a time. NOT_FOUND when the session has no such turn or checkpoint.",
  input: z.object({
    /** Determines the session and the turn. The checkpoint that the rewind created is ignored. */
    rewind: RewindPermit,
    afterPath: z.string().nullable(),
  }),
  output: z.object({
    files: z.array(CapturedFileSchema),
    /** Changed documents of the store, with their versions before the change. Empty except on the first page. */
    documents: z.array(CapturedDocumentSchema),
    more: z.boolean(),
  }),
});

export const checkpointUnreferenced = storeRequest({
  subject: "store.checkpoint.unreferenced",
  clients: ["tool-runner"],
  doc: "Find which of these hashes no checkpoint refers to.",
  input: z.object({ sha256: z.array(z.string()).max(1000) }),
  output: z.object({ sha256: z.array(z.string()) }),
});

export const rewindPermit = storeRequest({
  subject: "store.rewind.permit",
  clients: ["channel-gateway"],
  doc: "Permit a tool-runner to run the rewind that a person requested. The reply is sent with `checkpoint.rewind` and is valid for one hour. A repeated request returns a new secret; earlier ones stay valid.",
  input: z.object({ rewindId: z.uuid(), sessionId: z.uuid(), turnId: z.uuid() }),
  output: z.object({ secret: Secret }),
});

export const rewindDocument = storeRequest({
  subject: "store.rewind.document",
  clients: ["tool-runner"],
  doc: "Restore one document of `store.checkpoint.files`: its earlier version becomes the newest one, with the authors of its lines, or the document is removed if it did not exist. The rewind's checkpoint records the replaced version first. Without a fence, only the outcome is reported. NOT_FOUND for a document that the rewind does not change. FENCED as for `store.rewind.update`.",
  input: z.object({
    rewind: RewindPermit,
    /** The number from `store.rewind.begin`; null for a dry run. */
    fence: z.number().int().nullable(),
    path: z.string().max(300),
  }),
  output: z.object({ outcome: z.enum(["restored", "removed", "unchanged"]) }),
});

export const rewindBegin = storeRequest({
  subject: "store.rewind.begin",
  clients: ["tool-runner"],
  doc: "Acquire the workspace for a rewind, for `ttlMs` at a time, and create the rewind's own checkpoint. `busy`: another runner works on this or another rewind. A runner's name before `#` is stable across restarts: a lease of its previous instance is free. `unconfirmed`: a background process of the session runs on a tool-runner that is not in `idle`. CONFLICT while a turn of the session or of its sub-agents runs; NOT_FOUND when the session has no such turn or checkpoint.",
  input: z.object({
    rewind: RewindPermit,
    /** The name of the tool-runner process, `<replica>#<instance>`. */
    runner: z.string(),
    ttlMs: z.number().int().positive(),
    /** Tool-runners that have reported no running background process of the session. Omitted: not checked. */
    idle: z.array(z.string()).optional(),
  }),
  output: z.discriminatedUnion("status", [
    z.object({ status: z.literal("granted"), fence: z.number().int() }),
    z.object({ status: z.literal("busy") }),
    z.object({ status: z.literal("unconfirmed"), processId: z.string() }),
    z.object({ status: z.literal("done"), report: RewindReportSchema }),
  ]),
});

export const rewindUpdate = storeRequest({
  subject: "store.rewind.update",
  clients: ["tool-runner"],
  doc: "Extend the ownership of the workspace by `ttlMs`, or record the outcome of a rewind (null: it failed and can be requested again) and release the workspace. FENCED when another runner took over the rewind or another rewind began.",
  input: z.object({
    rewind: RewindPermit,
    fence: z.number().int(),
    change: z.union([
      z.object({ ttlMs: z.number().int().positive() }),
      z.object({ report: RewindReportSchema.nullable() }),
    ]),
  }),
  output: Empty,
});
