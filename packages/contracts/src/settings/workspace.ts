// The workspace: how much of the disk what the agent works on may take.
import { z } from "zod";

const gibibyte = 1024 ** 3;

export const WorkspaceSettings = z
  .strictObject({
    /** What all files of the workspace may take together, bytes on the disk. Above it tools that write refuse and commands that write are stopped. 0 = no limit. */
    max_bytes: z
      .number()
      .int()
      .min(0)
      .default(10 * gibibyte),
    /** What stays free on the workspace's disk, bytes: for the database and the log, which may be on the same one. 0 = nothing. */
    min_free_bytes: z
      .number()
      .int()
      .min(0)
      .default(gibibyte / 2),
    /**
     * Users work in the owner's workspace, and read and change its files. Without it each of their conversations has a workspace of its
     * own. Guests never work in the owner's.
     */
    share_with_users: z.boolean().default(false),
  })
  .prefault({});
