// The workspace: further folders, disk quotas and sharing.
import { z } from "zod";

const gibibyte = 1024 ** 3;

/** The name of a further workspace, also in ids. */
const workspaceName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,39}$/, "must have 1 to 40 of a-z, 0-9, - and _");

export const WorkspaceSettings = z
  .strictObject({
    /**
     * Further folders that sessions of the owner may work in instead of the workspace, by name: absolute paths of existing folders on
     * every machine of the tool-runner. `/workspace <name>` or `parley chat --workspace <name>` chooses one for a new session.
     */
    folders: z.record(workspaceName, z.string().regex(/^\//, "must be an absolute path")).default({}),
    /**
     * Folders that commands of the owner's turns can read at `/mnt/<name>`, and not change: absolute paths of existing folders on every
     * machine of the tool-runner. Only with the isolation bubblewrap. File tools do not see them.
     */
    mounts: z.record(workspaceName, z.string().regex(/^\//, "must be an absolute path")).default({}),
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
