// File checkpoints: what is kept of the workspace so that a turn's changes can be undone.
import { z } from "zod";

export const CheckpointSettings = z
  .strictObject({
    /** Files are kept before a turn changes them for the first time. */
    enabled: z.boolean().default(true),
    /** Larger files are not kept, and a rewind leaves them as they are. */
    max_file_bytes: z
      .number()
      .int()
      .min(0)
      .max(1024 * 1024 * 1024)
      .default(10 * 1024 * 1024),
    /** Checkpoints are deleted after so many days; 0 = never. */
    retention_days: z.number().int().min(0).default(30),
  })
  .prefault({});
export type CheckpointSettings = z.infer<typeof CheckpointSettings>;
