// Permits for rewinds: the gateway requests one for a person, and the tool-runner that runs the rewind presents its secret.
import { randomBytes } from "node:crypto";
import { WireError, type store } from "@parley/contracts";
import { type Database } from "../../db/database.ts";
import { hashOf } from "../../grants.ts";
import type { Handlers, StoreContext } from "../handler.ts";

/** Validity of a permit: longer than a rewind is retried after a runner crash. */
const holdsMinutes = 60;

export interface PermittedRewind {
  rewindId: string;
  sessionId: string;
  /** The turn or rewind whose earlier state is restored. */
  turnId: string;
}

export const permitHandlers = {
  async rewindPermit({ database }, { rewindId, sessionId, turnId }) {
    const secret = randomBytes(32).toString("base64url");
    const { rowCount } = await database.query(
      `INSERT INTO parley.rewind_permits (rewind_id, secret_hash, session_id, target_id)
       SELECT $1, $2, id, $4 FROM parley.sessions WHERE id = $3`,
      [rewindId, hashOf(secret), sessionId, turnId],
    );
    if (rowCount === 0) throw new WireError("NOT_FOUND", `no session ${sessionId}`);
    return { secret };
  },
} satisfies Partial<Handlers>;

/** Returns the rewind of a permit. Throws FORBIDDEN for an unknown or expired permit. */
export async function checkPermit(
  database: Database,
  { rewindId, secret }: store.RewindPermit,
): Promise<PermittedRewind> {
  const { rows } = await database.query<{ session_id: string; target_id: string }>(
    `SELECT session_id, target_id FROM parley.rewind_permits
     WHERE rewind_id = $1 AND secret_hash = $2 AND created_at > now() - ${holdsMinutes} * interval '1 minute'`,
    [rewindId, hashOf(secret)],
  );
  const row = rows[0];
  if (row === undefined)
    throw new WireError("FORBIDDEN", `rewind ${rewindId} is not permitted, or its permit has expired`);
  return { rewindId, sessionId: row.session_id, turnId: row.target_id };
}

/** The handler of a request for one rewind: it takes session and turn only from the checked permit. */
export function withRewindPermit<I extends { rewind: store.RewindPermit }, O>(
  handle: (context: StoreContext, permit: PermittedRewind, input: I) => Promise<O>,
): (context: StoreContext, input: I) => Promise<O> {
  return async (context, input) => handle(context, await checkPermit(context.database, input.rewind), input);
}
