// Puts a conversation on a connection: finds out first whether there is a gateway that lets us in, and which session is meant.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

import { Gateway, Refused } from "../cluster/gateway.ts";
import { MessageStateAnswer, SessionAnswer, SessionsAnswer } from "../cluster/shapes.ts";
import type { Target } from "../cluster/target.ts";
import { CliError } from "../errors.ts";
import type { Listener } from "./conversation-ports.ts";
import { Conversation } from "./conversation.ts";
import type { ThreadChoice } from "./frames.ts";
import { Link } from "./link.ts";

/** The thread that the owner's conversations share, and how the gateway names one of its own chats. */
export const mainSession = "main";
export const ownPrefix = "http:default:";
/** The chat that is meant where none is named. */
export const ownConversation = "cli";
const lookUpPauseMs = 500;

export interface ChatPlace {
  /** The chat's name; the default where a session is named. */
  readonly conversation: string;
  /** A session by id or key; it is shown whole, whoever speaks in it. */
  readonly session: string | undefined;
  /** Of a session only what answers us. */
  readonly onlyOurs?: boolean;
  /** Also what no person asked for: reports of sub-agents, schedules. */
  readonly unasked?: boolean;
  /** Each message waits for an answer of its own. */
  readonly exclusive?: boolean;
  /** Of the conversation, where no session is named. */
  readonly thread?: ThreadChoice | undefined;
  /** False: nobody here answers approval questions. Left out: somebody does. */
  readonly interactive?: boolean;
}

/** A command, or a text that says how it meets the running turn (`/steer`): both concern the chat, not a call of their own. */
const concernsTheChat = /^\/[A-Za-z][A-Za-z0-9_-]*(?:\s|$)/;

/** The place of a call that waits for its answer: the conversation that was named, else a session of its own. */
export function callPlace(
  kind: "run" | "once",
  named: string | undefined,
  text = "",
): Pick<ChatPlace, "conversation" | "thread" | "exclusive"> {
  const conversation = named ?? (concernsTheChat.test(text) ? ownConversation : undefined);
  if (conversation !== undefined) return { conversation, exclusive: true };
  return { conversation: `${kind}-${randomUUID()}`, thread: "own", exclusive: true };
}

export interface OpenChat {
  readonly conversation: Conversation;
  /** False where one can only watch: the session belongs to another channel. */
  readonly canSpeak: boolean;
  readonly gateway: Gateway;
  close(): void;
}

/** Throws CliError when no gateway answers, the token is wrong or there is no such session. */
export async function openChat(target: Target, place: ChatPlace, listener: Listener): Promise<OpenChat> {
  const gateway = new Gateway(target);
  const { speaksAs, sessions, everything, thread } = await findPlace(gateway, place);
  const conversation = new Conversation(
    {
      conversation: speaksAs,
      sessions,
      everything,
      unasked: place.unasked === true,
      exclusive: place.exclusive === true,
      thread,
      interactive: place.interactive !== false,
      lookUp: (id) => gateway.get(`/api/messages/${id}`, MessageStateAnswer),
      pause: () => delay(lookUpPauseMs),
    },
    listener,
  );
  const link = new Link(target, conversation);
  conversation.attach(link);
  link.open();
  return { conversation, canSpeak: speaksAs !== null, gateway, close: () => link.close() };
}

async function findPlace(gateway: Gateway, { conversation, session, onlyOurs, thread }: ChatPlace) {
  if (session === undefined) {
    await gateway.get("/api/sessions?limit=1", SessionsAnswer);
    return {
      speaksAs: conversation,
      sessions: [mainSession, `${ownPrefix}${conversation}`],
      everything: false,
      thread,
    };
  }
  const path = `/api/sessions/${encodeURIComponent(session)}`;
  const found = await gateway.get(path, SessionAnswer).catch((error: unknown) => {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    throw new CliError(`There is no session "${session}".`, { fix: "parley sessions lists them." });
  });
  const { key, sessionId } = found.session;
  return {
    speaksAs: speakingName(key, conversation),
    sessions: [sessionId],
    everything: onlyOurs !== true,
    // Also where the policy would lead its conversation to another session.
    thread: key === mainSession ? undefined : ("named" as const),
  };
}

/** The name of the chat in which one speaks into the session of this key; null where it is another channel's. Pure. */
export function speakingName(key: string, conversation: string): string | null {
  if (key === mainSession) return conversation;
  return key.startsWith(ownPrefix) ? key.slice(ownPrefix.length) : null;
}
