// The route to a session that a caller names.
import type { Bus } from "@parley/bus";
import { store } from "@parley/contracts";
import type { SessionDirectory } from "../live/session-directory.ts";
import { OperationError } from "../operations/operation.ts";
import { conversationKey } from "./route.ts";

/**
 * The route of an existing session: its key, unless that was bound to another session; then a route of its own, which this binds.
 * Throws OperationError when there is no such session, or when it belongs to a sub-agent.
 */
export async function routeOfSession(
  { bus, sessions }: { bus: Bus; sessions: SessionDirectory },
  idOrKey: string,
): Promise<string> {
  const session = await sessions.find(idOrKey);
  if (session === null) throw new OperationError("not_found", `there is no session "${idOrKey}"`);
  if (session.parentId !== null)
    throw new OperationError("conflict", "this session belongs to a sub-agent; write to the session that started it");
  const bound = await sessions.find(session.key);
  if (bound?.sessionId === session.sessionId) return session.key;
  const route = conversationKey({ channel: "http", account: "default", conversation: session.sessionId });
  await bus.request(store.sessionBind, { route, session: session.sessionId });
  return route;
}
