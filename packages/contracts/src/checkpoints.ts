// File checkpoints: what stood at a path before a turn changed it, and putting it back.
import { z } from "zod";
import { request } from "./contract.ts";

/** Characters a kept path may have, so that it fits an index whatever they are: PostgreSQL allows 2,704 bytes. */
export const maxKeptPathCharacters = 600;

/** A path below the workspace folder, with `/`, without links on the way at the time it was kept. */
const WorkspacePath = z.string().min(1).max(maxKeptPathCharacters);
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);

/** What stood at a path. `file` and `link` have their content (bytes, the link's target) kept under its hash. */
export const KeptFileSchema = z.discriminatedUnion("kind", [
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
  /** Nothing had that name: a rewind removes what has it now. */
  z.object({ kind: z.literal("absent"), path: WorkspacePath }),
  /** Not kept, and why; a rewind leaves it as it is. */
  z.object({ kind: z.literal("untracked"), path: WorkspacePath, reason: z.string().max(500) }),
]);
export type KeptFile = z.infer<typeof KeptFileSchema>;

const rewindOutcomes = ["restored", "removed", "skipped", "failed"] as const;
/** `restored`: it is as it was. `removed`: it had not been there. `skipped`: left as it is. `failed`: it should have been put back. */
export type RewindOutcome = (typeof rewindOutcomes)[number];

const RewoundFileSchema = z.object({
  path: z.string(),
  outcome: z.enum(rewindOutcomes),
  /** Why it was skipped or failed; null for the others. */
  reason: z.string().nullable(),
});
export type RewoundFile = z.infer<typeof RewoundFileSchema>;

export const RewindReportSchema = z.object({
  /** The checkpoint the rewind made of what it replaced: rewinding to it undoes the rewind. Null for a dry run. */
  checkpointId: z.string().nullable(),
  counts: z.record(z.enum(rewindOutcomes), z.number().int()),
  /** Failed and skipped ones first, as many as fit one reply. */
  files: z.array(RewoundFileSchema),
  /** Files that are counted but not listed. */
  omitted: z.number().int(),
});
export type RewindReport = z.infer<typeof RewindReportSchema>;

export const checkpointRewind = request({
  subject: "checkpoint.rewind",
  server: "tool-runner",
  clients: ["channel-gateway"],
  doc: "Put the files of the workspace back to how they were before a turn (or an earlier rewind) of this session: what that turn and everything after it in the session changed. CONFLICT while a turn of the session or of its sub-agents runs; NOT_FOUND when the session has no such turn or checkpoint. One rewind at a time: another one is waited for. Asked again with the same `opId` it answers the same, and finishes what a runner that died has left.",
  input: z.object({
    opId: z.uuid(),
    sessionId: z.uuid(),
    turnId: z.uuid(),
    /** Only say what would become of each file. */
    dryRun: z.boolean(),
    /** From `store.rewind.permit`, for this `opId`, session and turn. */
    secret: z.string(),
  }),
  output: RewindReportSchema,
});
