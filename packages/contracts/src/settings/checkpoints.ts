// File checkpoints: captured workspace files with which a turn's changes can be undone.
import { z } from "zod";

export const CheckpointSettings = z
  .strictObject({
    /** Capture files before a turn changes them for the first time. */
    enabled: z.boolean().default(true),
    /** Larger files are not captured, and a rewind does not change them. */
    max_file_bytes: z
      .number()
      .int()
      .min(0)
      .max(1024 * 1024 * 1024)
      .default(10 * 1024 * 1024),
    /** Checkpoints are deleted after this many days; 0: never. */
    retention_days: z.number().int().min(0).default(30),
  })
  .prefault({});
export type CheckpointSettings = z.infer<typeof CheckpointSettings>;
