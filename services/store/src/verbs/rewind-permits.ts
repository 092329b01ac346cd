// Permits for rewinds: a person wants one through the gateway, and the tool-runner that carries it out shows the secret of its permit.
import { randomBytes } from "node:crypto";
import { WireError, type InputOf, type OutputOf, type store } from "@parley/contracts";
import { withClient, type Database } from "../database.ts";
import { hashOf } from "../grants.ts";

/** How long a permit holds: longer than a rewind is repeated after a runner died. */
const holdsMinutes = 60;

export interface PermittedRewind {
  rewindId: string;
  sessionId: string;
  /** The turn or rewind before which everything is to be. */
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

/** The rewind that a permit is for. Throws FORBIDDEN for one that was not given out, or is over. */
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
      throw new WireError("FORBIDDEN", `rewind ${rewindId} is not permitted, or its permit is over`);
    return { rewindId, sessionId: row.session_id, turnId: row.target_id };
  });
}
