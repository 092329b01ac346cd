// Operations on checkpoints of files.
import { z } from "zod";
import { checkpointRewind } from "../checkpoints.ts";
import { checkpointList } from "../store/checkpoints.ts";
import { count, sameOperation, SessionRef, TextAnswer } from "./fields.ts";
import { operation } from "./operation.ts";

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
  cli: { command: "checkpoints" },
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
  cli: { command: "rewind" },
});

const rewindArguments = [
  { field: "checkpoint", label: "number or id of a checkpoint" },
  { field: "dryRun", flag: "--dry-run" },
] as const;

export const checkpointsRewindListed = operation({
  name: "checkpoints.rewind_listed",
  summary: "Restore files from a checkpoint of the list",
  role: "owner",
  session: "id",
  input: z.strictObject({ id: SessionRef, checkpoint: z.string(), dryRun: z.boolean().default(false) }),
  output: TextAnswer,
  slash: [
    { form: "/checkpoint rewind", arguments: rewindArguments },
    { form: "/rewind", arguments: rewindArguments },
  ],
});
