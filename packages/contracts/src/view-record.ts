// Which part of a session's log prompts contain. The log is never rewritten; a compaction writes a new record.
import { z } from "zod";

export const ViewRecordSchema = z.object({
  /** One above the record it replaces; the first is 1. */
  version: z.number().int().positive(),
  /** Last position of the messages at the beginning that are kept unchanged; 0: none. */
  keepFirstTo: z.number().int().nonnegative(),
  /** First position that is shown after the summary; 0: nothing was removed. */
  fromSeq: z.number().int().nonnegative(),
  /** Replaces the messages between the two positions; null: no replacement. */
  summary: z.string().nullable(),
  /** The person's last request before `fromSeq`, repeated after the summary. */
  lastRequest: z.string().nullable(),
  /** Tool results before this position are shown as a placeholder; 0: none. */
  clearedBefore: z.number().int().nonnegative(),
  /** Longer tool results are shown as their beginning and end, with this many characters in total; omitted: in full. */
  maxResultChars: z.number().int().positive().optional(),
  /**
   * First position of the log that did not exist when the record was made. Reasoning before it is bound by its signature to a
   * prompt that is no longer sent, so it is not shown; omitted: 0.
   */
  madeAtSeq: z.number().int().nonnegative().optional(),
  /** The open to-do items when the record was made, one line per item; omitted: none. */
  todos: z.string().optional(),
  /** The model was shown tainted content when the record was made, so that what the record shows is tainted. Omitted: it was not. */
  tainted: z.boolean().optional(),
  trigger: z.string(),
  strategy: z.string(),
});
export type ViewRecord = z.infer<typeof ViewRecordSchema>;

/** The summary that the compaction of this record wrote; null: it wrote none. */
export function writtenSummary({ strategy, summary }: ViewRecord): string | null {
  return strategy === "summarize" ? summary : null;
}
