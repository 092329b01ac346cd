// Where a chat on a terminal begins: the conversation of its name, or a session that its options choose.

import { randomUUID } from "node:crypto";

import type { Message, SessionSummary } from "@parley/contracts";
import { textOf } from "@parley/contracts";

import type { RunningTurn } from "../chat/connection.ts";
import { type ChatPlace, ownConversation, ownPrefix } from "../chat/open.ts";
import { api } from "../cluster/api.ts";
import type { Gateway } from "../cluster/gateway.ts";
import { findSession, lastSession, sessionOf } from "../run/place.ts";
import { localTime, stripControl } from "../tables/format.ts";
import type { RecapEntry } from "./state.ts";

export interface ChatStart {
  /** The name of the chat; undefined: the default one. */
  readonly conversation: string | undefined;
  /** A session by id or key. */
  readonly session: string | undefined;
  /** A session by id, key or title. */
  readonly resume: string | undefined;
  /** The most recently used session. */
  readonly continue: boolean;
  /** A copy of the session instead of the session. */
  readonly fork: boolean;
  readonly profile: string | undefined;
  /** A folder of `[workspace.folders]`; each has a conversation of the same name. */
  readonly workspace: string | undefined;
}

/** Throws CliError for a session that does not exist or cannot be identified. */
export async function chatPlace(gateway: Gateway, start: ChatStart): Promise<ChatPlace> {
  const named = start.conversation ?? ownConversation;
  const apart = [start.profile, start.workspace].filter((each) => each !== undefined);
  const conversation = [named, ...apart].join("@");
  const thread = apart.length === 0 ? {} : { thread: "named" as const };
  const chosen =
    start.resume !== undefined
      ? await findSession(gateway, start.resume)
      : start.continue
        ? await lastSession(gateway, start.workspace)
        : start.session;
  if (!start.fork) return { conversation, session: chosen, unasked: true, ...thread };
  const source = chosen ?? (await sessionOf(gateway, null, conversation))?.sessionId;
  if (source === undefined) return { conversation, session: undefined, unasked: true, ...thread };
  const route = `${ownPrefix}chat-${randomUUID()}`;
  const { session } = await gateway.run(api.openSession, { action: "fork", session: source, route });
  return { conversation, session: session.sessionId, unasked: true };
}

/** The session that a chat at this place uses; null: its first message creates one, or it is not known. */
export async function currentSession(
  gateway: Gateway,
  place: ChatPlace,
  id: string | null,
): Promise<SessionSummary | null> {
  return sessionOf(gateway, id ?? place.session ?? null, place.conversation).catch(() => null);
}

/**
 * The running turn of a chat that was left and is opened again, with all that happened in it: an open question is shown. Undefined: none,
 * or it belongs to another channel.
 */
export async function runningTurn(gateway: Gateway, place: ChatPlace): Promise<RunningTurn | undefined> {
  if (place.session !== undefined) return undefined;
  const session = await currentSession(gateway, place, null);
  if (session === null || session.runningTurnId === null) return undefined;
  const { sessionId, seq, runningTurnId: turnId } = session;
  const after = Math.max(0, seq - recapEvents);
  const found = await gateway.run(api.messages, { id: sessionId, after, limit: recapEvents }).catch(() => null);
  const own = found?.messages.filter((message) => message.turnId === turnId) ?? [];
  const isOurs = own.some(({ from }) => from?.channel === "http" && from.conversation === place.conversation);
  return isOurs ? { turnId, sessionId, afterSeq: Math.min(...own.map((message) => message.seq)) - 1 } : undefined;
}

/** The last events of a session that are read for the recap. */
const recapEvents = 60;
const maxRecapTexts = 4;

/** The end of the conversation before the turn that the chat follows; null: there is none, or it cannot be read. */
export async function recapOf(
  gateway: Gateway,
  session: SessionSummary | null,
  followed: RunningTurn | undefined,
): Promise<RecapEntry | null> {
  if (session === null || session.messageCount === 0) return null;
  const after = Math.max(0, session.seq - recapEvents);
  const found = await gateway.run(api.messages, { id: session.sessionId, after, limit: recapEvents }).catch(() => null);
  if (found === null) return null;
  const earlier = found.messages.filter(({ turnId }) => turnId !== followed?.turnId);
  return recapEntry(earlier, session.updatedAt);
}

/** The last texts of people and of the agent; null: there are none. Pure. */
export function recapEntry(messages: readonly Message[], updatedAt: string): RecapEntry | null {
  const texts = messages.flatMap((message): RecapEntry["texts"] => {
    const text = stripControl(textOf(message.parts)).trim();
    if (text === "" || message.role === "tool") return [];
    if (message.role === "assistant") return [{ by: "agent", text }];
    return message.from?.origin === "user" ? [{ by: "person", text }] : [];
  });
  if (texts.length === 0) return null;
  return { kind: "recap", lastUsed: localTime(updatedAt), texts: texts.slice(-maxRecapTexts) };
}
