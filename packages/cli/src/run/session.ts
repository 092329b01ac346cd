// Which session a run goes on with.

import type { SessionSummary } from "@parley/contracts";

import { mainSession, ownPrefix, speakingName } from "../chat/open.ts";
import { Refused, type Gateway } from "../cluster/gateway.ts";
import { SessionAnswer, SessionsAnswer } from "../cluster/shapes.ts";
import { CliError } from "../errors.ts";

/** The id of the session used last, of those one can speak in from here. Throws CliError when there is none. */
export async function lastSession(gateway: Gateway): Promise<string> {
  const { sessions } = await gateway.get("/api/sessions?limit=200", SessionsAnswer);
  const last = sessions.find(
    ({ key, status, parentId }) => status === "active" && parentId === null && speakingName(key, "cli") !== null,
  );
  if (last === undefined) throw new CliError("There is no session to go on with.", { fix: "Leave --continue out." });
  return last.sessionId;
}

/** The session by its id; else the one the conversation leads to; null when there is none yet. */
export async function sessionOf(
  gateway: Gateway,
  sessionId: string | null,
  conversation: string,
): Promise<SessionSummary | null> {
  for (const name of sessionId === null ? [`${ownPrefix}${conversation}`, mainSession] : [sessionId]) {
    try {
      return (await gateway.get(`/api/sessions/${encodeURIComponent(name)}`, SessionAnswer)).session;
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
    }
  }
  return null;
}
