// File checkpoints: the state of a path before a turn changed it, and its restoration.
import { z } from "zod";
import { request } from "./contract.ts";
import { WorkspaceIdSchema } from "./tools.ts";

/** Maximum length of a captured path, in characters. Any such path fits an index entry, which PostgreSQL limits to 2,704 bytes. */
export const maxCapturedPathCharacters = 600;

/** A path relative to the workspace folder, separated by `/`. It led through no links when it was captured. */
const WorkspacePath = z.string().min(1).max(maxCapturedPathCharacters);
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** The captured state of a path. For `file` and `link`, the content (bytes or link target) is stored under its hash. */
export const CapturedFileSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("file"),
    path: WorkspacePath,
    sha256: Sha256,
    size: z.number().int().nonnegative(),
    /** Permission bits. */
    mode: z.number().int().min(0).max(0o7777),
  }),
  z.object({ kind: z.literal("link"), path: WorkspacePath, sha256: Sha256 }),
  z.object({ kind: z.literal("directory"), path: WorkspacePath, mode: z.number().int().min(0).max(0o7777) }),
  /** The path did not exist: a rewind removes what exists there now. */
  z.object({ kind: z.literal("absent"), path: WorkspacePath }),
  /** Not captured, with the reason; a rewind does not change it. */
  z.object({ kind: z.literal("untracked"), path: WorkspacePath, reason: z.string().max(500) }),
]);
export type CapturedFile = z.infer<typeof CapturedFileSchema>;

const rewindOutcomes = ["restored", "removed", "skipped", "failed"] as const;
/** `restored`: has its earlier content. `removed`: did not exist before. `skipped`: not changed. `failed`: could not be restored. */
type RewindOutcome = (typeof rewindOutcomes)[number];

/** The outcomes of a dry run in the words of a preview, before the path. */
export const previewedOutcomes: Readonly<Record<RewindOutcome, string>> = {
  restored: "will be restored",
  removed: "will be deleted",
  skipped: "will not change",
  failed: "cannot be restored",
};

const RewoundFileSchema = z.object({
  path: z.string(),
  outcome: z.enum(rewindOutcomes),
  /** Why it was skipped or failed; null for the others. */
  reason: z.string().nullable(),
});
export type RewoundFile = z.infer<typeof RewoundFileSchema>;

export const RewindReportSchema = z.object({
  /** The checkpoint of what the rewind replaced: rewinding to it undoes the rewind. Null for a dry run. */
  checkpointId: z.string().nullable(),
  counts: z.record(z.enum(rewindOutcomes), z.number().int()),
  /** Failed and skipped files first; as many as fit in one reply. */
  files: z.array(RewoundFileSchema),
  /** Files that are counted but not listed. */
  omitted: z.number().int(),
});
export type RewindReport = z.infer<typeof RewindReportSchema>;

export const checkpointRewind = request({
  subject: "checkpoint.rewind",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "Restore the workspace files that a turn (or an earlier rewind) and everything after it in this session changed. CONFLICT while a turn of the session or of its sub-agents runs; NOT_FOUND when the session has no such turn or checkpoint. Rewinds run one at a time; a second one waits. A repeated `opId` returns the same report and completes a rewind that a crashed runner left unfinished.",
  input: z.object({
    opId: z.uuid(),
    sessionId: z.uuid(),
    turnId: z.uuid(),
    /** The workspace of the session. Omitted: the owner's main one. */
    workspace: WorkspaceIdSchema.optional(),
    /** Only report the outcome for each file; change nothing. */
    dryRun: z.boolean(),
    /** From `store.rewind.permit`, for this `opId`, session and turn. */
    secret: z.string(),
  }),
  output: RewindReportSchema,
});
