// The session of a run: a new one, one that it continues, or a copy.

import type { SessionSummary } from "@parley/contracts";

import type { ThreadChoice } from "../chat/connection.ts";
import { callPlace, type ChatPlace, mainSession, ownPrefix, speakingName } from "../chat/open.ts";
import { api } from "../cluster/api.ts";
import { type Gateway, RequestRejectedError } from "../cluster/gateway.ts";
import { CliError } from "../io/io.ts";
import type { RunOptions } from "./options.ts";

export type RunPlace = Pick<ChatPlace, "conversation" | "thread" | "exclusive" | "session">;

/** The session of a run. `thread`: leads the messages of the run to it; omitted: the chat already does. */
export interface RunSession {
  readonly sessionId: string;
  readonly thread?: ThreadChoice;
}

/** The session at the place of a run, which is created if there is none. `named`: the chat has a name of its own. */
export async function openRunSession(gateway: Gateway, place: RunPlace, named: boolean): Promise<RunSession> {
  const found = place.session ?? (named ? (await sessionOf(gateway, null, place.conversation))?.sessionId : undefined);
  if (found !== undefined) return { sessionId: found };
  const route = `${ownPrefix}${place.conversation}`;
  const { session } = await gateway.run(api.openSession, { action: "new", route });
  // What belongs to this session counts for no other one, also where the settings of the cluster let calls share one.
  return { sessionId: session.sessionId, thread: place.thread === undefined ? "named" : "separate" };
}

/** Throws CliError for a session that does not exist or cannot be identified. */
export async function runPlace(gateway: Gateway, options: RunOptions, text: string): Promise<RunPlace> {
  const { session: choice, conversation: named, fork, profile } = options;
  const call = callPlace("run", named, text);
  // A profile has a conversation of its own of the same name.
  const isShared = profile !== null && call.thread === undefined;
  const place = isShared ? { ...call, conversation: `${call.conversation}@${profile}` } : call;
  if (choice === "new") {
    // A new session also where the settings let calls share one.
    const route = `${ownPrefix}${place.conversation}`;
    if (named !== undefined) await gateway.run(api.openSession, { action: "new", route });
    return { ...place, thread: named === undefined ? "separate" : "named", session: undefined };
  }
  if (choice === null) return { ...place, session: undefined };
  const found =
    choice === "last" ? await lastSession(gateway, options.setup.workspace) : await findSession(gateway, choice.resume);
  if (!fork) return { ...place, session: found };
  const copy = callPlace("run", named);
  const route = `${ownPrefix}${copy.conversation}`;
  const { session } = await gateway.run(api.openSession, { action: "fork", session: found, route });
  return { ...copy, session: session.sessionId };
}

/** The id of the session with this id, key or title. Throws CliError when there is none, or several have the title. */
export async function findSession(gateway: Gateway, name: string): Promise<string> {
  const known = await existing(gateway, name);
  if (known !== null) return known.sessionId;
  const { sessions } = await gateway.run(api.sessions, { limit: 200, calls: true, text: name.slice(0, 200) });
  const titled = sessions.filter(({ title }) => title?.toLowerCase() === name.toLowerCase());
  const [only, ...others] = titled;
  if (only === undefined)
    throw new CliError(`There is no session "${name}".`, { fix: "parley sessions --calls lists them." });
  if (others.length === 0) return only.sessionId;
  throw new CliError(`${titled.length} sessions have the title "${name}".`, {
    fix: `Name one by its id: ${titled.map(({ sessionId }) => sessionId).join(", ")}`,
  });
}

/** Key prefix of sessions of single API calls; they belong to other programs, so `--continue` skips them. */
const apiCallPrefix = `${ownPrefix}call-`;

/**
 * The id of the most recently used session that accepts messages from here. `workspace`: one that works in this folder. Throws CliError
 * when there is none.
 */
export async function lastSession(gateway: Gateway, workspace?: string): Promise<string> {
  for (let before: string | undefined; ;) {
    const { sessions } = await gateway.run(api.sessions, { limit: 200, status: "active", calls: true, before });
    const last = sessions.find(
      ({ key, parentId, overrides }) =>
        parentId === null &&
        speakingName(key, "cli") !== null &&
        !key.startsWith(apiCallPrefix) &&
        (workspace === undefined || overrides.workspace === workspace),
    );
    if (last !== undefined) return last.sessionId;
    before = sessions.at(-1)?.sessionId;
    if (before === undefined)
      throw new CliError(`There is no session to continue${workspace === undefined ? "" : ` in "${workspace}"`}.`, {
        fix: "Run again without --continue.",
      });
  }
}

/**
 * The session with this id, null if there is none. Without an id that of the conversation, otherwise the owner's main session; null
 * if neither exists yet.
 */
export async function sessionOf(
  gateway: Gateway,
  sessionId: string | null,
  conversation: string,
): Promise<SessionSummary | null> {
  if (sessionId !== null) return existing(gateway, sessionId);
  return (await existing(gateway, `${ownPrefix}${conversation}`)) ?? existing(gateway, mainSession);
}

async function existing(gateway: Gateway, idOrKey: string): Promise<SessionSummary | null> {
  try {
    return (await gateway.run(api.session, { id: idOrKey })).session;
  } catch (error) {
    if (!(error instanceof RequestRejectedError) || error.status !== 404) throw error;
    return null;
  }
}
