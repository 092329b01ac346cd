// Operations on checkpoints of files.
import { z } from "zod";
import { checkpointRewind } from "../checkpoints.ts";
import { checkpointList } from "../store/checkpoints.ts";
import { count, sameOperation, SessionRef } from "./fields.ts";
import { operation, slashOperation } from "./operation.ts";

const target = {
  checkpointId: z.uuid(),
  /** Only report what would happen to each file. */
  dryRun: z.boolean().default(false),
};

export const checkpointsList = operation({
  name: "checkpoints.list",
  summary: "Turns and rewinds of a session that changed files, newest first",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef, limit: count(1, 200).default(50) }),
  output: checkpointList.output,
  http: { method: "GET", path: "/api/sessions/:id/checkpoints", answers: { 200: "The checkpoints" } },
  slash: [
    { form: "/checkpoint", set: { limit: 20 } },
    { form: "/checkpoint list", set: { limit: 20 } },
  ],
});

export const checkpointsRewind = operation({
  name: "checkpoints.rewind",
  summary: "Restore files to their state before a checkpoint's turn",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef, ...target }),
  output: checkpointRewind.output,
  http: {
    method: "POST",
    path: "/api/sessions/:id/rewind",
    key: sameOperation,
    answers: {
      200: "The outcome for each file",
      409: "conflict: a turn of the session or of its sub-agents is running",
    },
  },
  ws: [{ subtype: "rewind_files", input: z.strictObject(target) }],
});

const rewindArguments = [
  { field: "checkpoint", label: "number or id of a checkpoint" },
  { field: "dryRun", flag: "--dry-run" },
] as const;

export const checkpointsRewindListed = slashOperation({
  name: "checkpoints.rewind_listed",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef, checkpoint: z.string(), dryRun: z.boolean().default(false) }),
  slash: [
    { form: "/checkpoint rewind", arguments: rewindArguments },
    { form: "/rewind", arguments: rewindArguments },
  ],
});
