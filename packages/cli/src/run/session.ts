// Finds the session that a run continues.

import type { SessionSummary } from "@parley/contracts";

import { mainSession, ownPrefix, speakingName } from "../chat/open.ts";
import { RequestRejectedError, type Gateway } from "../cluster/gateway.ts";
import { SessionAnswer, SessionsAnswer } from "../cluster/shapes.ts";
import { CliError } from "../errors.ts";

/** Key prefix of sessions of single API calls; they belong to other programs, so `--continue` skips them. */
const apiCallPrefix = `${ownPrefix}call-`;

/** The id of the most recently used session that accepts messages from here. Throws CliError when there is none. */
export async function lastSession(gateway: Gateway): Promise<string> {
  let before = "";
  for (;;) {
    const page = await gateway.get(`/api/sessions?limit=200&status=active&calls=true${before}`, SessionsAnswer);
    const last = page.sessions.find(
      ({ key, parentId }) => parentId === null && speakingName(key, "cli") !== null && !key.startsWith(apiCallPrefix),
    );
    if (last !== undefined) return last.sessionId;
    const oldest = page.sessions.at(-1);
    if (oldest === undefined)
      throw new CliError("There is no session to continue.", { fix: "Run again without --continue." });
    before = `&before=${oldest.sessionId}`;
  }
}

/** The session by its id, or that of the conversation; null when there is none yet. */
export async function sessionOf(
  gateway: Gateway,
  sessionId: string | null,
  conversation: string,
): Promise<SessionSummary | null> {
  for (const name of sessionId === null ? [`${ownPrefix}${conversation}`, mainSession] : [sessionId]) {
    try {
      return (await gateway.get(`/api/sessions/${encodeURIComponent(name)}`, SessionAnswer)).session;
    } catch (error) {
      if (!(error instanceof RequestRejectedError) || error.status !== 404) throw error;
    }
  }
  return null;
}
