// Which part of a session's log a model is shown. The log is never rewritten; a compaction writes a new record.
import { z } from "zod";

export const ViewRecordSchema = z.object({
  /** One above the record it replaces; the first is 1. */
  version: z.number().int().positive(),
  /** Last position of the messages at the beginning that stay as they are; 0 = none. */
  keepFirstTo: z.number().int().nonnegative(),
  /** First position that is shown after the summary; 0 = nothing has been left out. */
  fromSeq: z.number().int().nonnegative(),
  /** What stands for the messages between the two; null: nothing does. */
  summary: z.string().nullable(),
  /** The person's last request before `fromSeq`, repeated after the summary. */
  lastRequest: z.string().nullable(),
  /** Results of tools before this position are shown as a placeholder; 0 = none. */
  clearedBefore: z.number().int().nonnegative(),
  /** Longer results of tools are shown as their beginning and end, this many characters together; left out: whole. */
  maxResultChars: z.number().int().positive().optional(),
  /**
   * First position of the log that did not exist when the record was made. Reasoning before it is bound by its signature to a
   * prompt that is no longer sent, so it is not shown; left out: 0.
   */
  madeAtSeq: z.number().int().nonnegative().optional(),
  /** What was left to do when the record was made, a line an item; left out: nothing. */
  todos: z.string().optional(),
  /** The model was shown tainted content when the record was made, so that what the record shows is tainted. Left out: it was not. */
  tainted: z.boolean().optional(),
  trigger: z.string(),
  strategy: z.string(),
});
export type ViewRecord = z.infer<typeof ViewRecordSchema>;
