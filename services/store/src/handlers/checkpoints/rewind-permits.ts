// Permits for rewinds: the gateway requests one for a person, and the tool-runner that runs the rewind presents its secret.
import { randomBytes } from "node:crypto";
import { WireError, type InputOf, type OutputOf, type store } from "@parley/contracts";
import { withClient, type Database } from "../../db/database.ts";
import { hashOf } from "../../grants.ts";

/** Validity of a permit: longer than a rewind is retried after a runner crash. */
const holdsMinutes = 60;

export interface PermittedRewind {
  rewindId: string;
  sessionId: string;
  /** The turn or rewind whose earlier state is restored. */
  turnId: string;
}

export async function permit(
  database: Database,
  { rewindId, sessionId, turnId }: InputOf<typeof store.rewindPermit>,
): Promise<OutputOf<typeof store.rewindPermit>> {
  const secret = randomBytes(32).toString("base64url");
  return withClient(database, async (client) => {
    const { rowCount } = await client.query(
      `INSERT INTO parley.rewind_permits (rewind_id, secret_hash, session_id, target_id)
       SELECT $1, $2, id, $4 FROM parley.sessions WHERE id = $3`,
      [rewindId, hashOf(secret), sessionId, turnId],
    );
    if (rowCount === 0) throw new WireError("NOT_FOUND", `no session ${sessionId}`);
    return { secret };
  });
}

/** Returns the rewind of a permit. Throws FORBIDDEN for an unknown or expired permit. */
export async function permitted(
  database: Database,
  { rewindId, secret }: store.RewindPermit,
): Promise<PermittedRewind> {
  return withClient(database, async (client) => {
    const { rows } = await client.query<{ session_id: string; target_id: string }>(
      `SELECT session_id, target_id FROM parley.rewind_permits
       WHERE rewind_id = $1 AND secret_hash = $2 AND created_at > now() - ${holdsMinutes} * interval '1 minute'`,
      [rewindId, hashOf(secret)],
    );
    const row = rows[0];
    if (row === undefined)
      throw new WireError("FORBIDDEN", `rewind ${rewindId} is not permitted, or its permit has expired`);
    return { rewindId, sessionId: row.session_id, turnId: row.target_id };
  });
}
