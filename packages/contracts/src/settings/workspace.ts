// The workspace: disk quotas and sharing.
import { z } from "zod";

const gibibyte = 1024 ** 3;

export const WorkspaceSettings = z
  .strictObject({
    /** Maximum bytes on disk of all workspace files. Above it, writing tools refuse and writing commands are stopped. 0: no limit. */
    max_bytes: z
      .number()
      .int()
      .min(0)
      .default(10 * gibibyte),
    /** Bytes to keep free on the workspace's disk, for a database and logs on the same disk. 0: none. */
    min_free_bytes: z
      .number()
      .int()
      .min(0)
      .default(gibibyte / 2),
    /**
     * Users work in the owner's workspace, and read and change its files. Otherwise each of their conversations has its own workspace.
     * Guests never work in the owner's.
     */
    share_with_users: z.boolean().default(false),
  })
  .prefault({});
