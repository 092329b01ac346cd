// Opens a conversation: checks first that a gateway accepts the token, and finds the session.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

import { type QueueMode, queueModes } from "@parley/contracts";

import { type Listener, ReconnectingSocket, type RunningTurn, type ThreadChoice } from "./connection.ts";
import { Conversation } from "./conversation.ts";
import { api } from "../cluster/api.ts";
import { Gateway, RequestRejectedError } from "../cluster/gateway.ts";
import type { Target } from "../cluster/target.ts";
import { CliError } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";

/** The owner's shared thread, and the key prefix of the gateway's own chats. */
export const mainSession = "main";
export const ownPrefix = "http:default:";
/** The default chat. */
export const ownConversation = "cli";
const lookUpPauseMs = 500;

export interface ChatPlace {
  /** The chat's name; the default chat if a session is named. */
  readonly conversation: string;
  /** A session by id or key; all its turns are shown. */
  readonly session: string | undefined;
  /** Show only the turns of a session that answer our messages. */
  readonly onlyOurs?: boolean;
  /** Also show turns that no message of this chat started: reports of sub-agents, schedules, voice, another chat of the same name. */
  readonly unasked?: boolean;
  /** Each message gets a turn of its own. */
  readonly exclusive?: boolean;
  /** The thread of the conversation, if no session is named. */
  readonly thread?: ThreadChoice | undefined;
  /** False: nobody here answers approval questions. Omitted: somebody does. */
  readonly interactive?: boolean;
  /** A running turn of this chat, and the position of its session's log from which events are read. */
  readonly running?: RunningTurn | undefined;
}

/** A command, or a text with a queue mode (`/steer`): both apply to the chat, not to a call with its own session. */
const concernsTheChat = /^\/[A-Za-z][A-Za-z0-9_-]*(?:\s|$)/;

/** The place of a call that waits for its answer: the named conversation, otherwise a new session. */
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
  /** False if the session belongs to another channel and is read-only. */
  readonly canSpeak: boolean;
  readonly gateway: Gateway;
  close(): void;
}

/** Finds a chat and connects. Throws CliError when no gateway answers, the token is wrong or the session does not exist. */
export async function openChat(target: Target, place: ChatPlace, listener: Listener): Promise<OpenChat> {
  const chat = await findChat(target, place, listener);
  chat.connect();
  return chat;
}

/** Like `openChat`, but the listener receives nothing before `connect`. */
export async function findChat(
  target: Target,
  place: ChatPlace,
  listener: Listener,
): Promise<OpenChat & { connect(): void }> {
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
      running: place.running,
      lookUp: (id) => gateway.run(api.message, { id }),
      pause: () => delay(lookUpPauseMs),
    },
    listener,
  );
  const link = new ReconnectingSocket(target, conversation);
  conversation.attach(link);
  const chat = { conversation, canSpeak: speaksAs !== null, gateway, close: () => link.close() };
  return { ...chat, connect: () => link.open() };
}

async function findPlace(gateway: Gateway, { conversation, session, onlyOurs, thread }: ChatPlace) {
  if (session === undefined) {
    await gateway.run(api.sessions, { limit: 1 });
    return {
      speaksAs: conversation,
      sessions: [mainSession, `${ownPrefix}${conversation}`],
      everything: false,
      thread,
    };
  }
  const found = await gateway.run(api.session, { id: session }).catch((error: unknown) => {
    if (!(error instanceof RequestRejectedError) || error.status !== 404) throw error;
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

/** The chat name for the session with this key; null if the session belongs to another channel. Pure. */
export function speakingName(key: string, conversation: string): string | null {
  if (key === mainSession) return conversation;
  return key.startsWith(ownPrefix) ? key.slice(ownPrefix.length) : null;
}

/** Undefined: the session or the settings decide. The parser has already validated the value. */
export function modeOf(values: OptionValues): QueueMode | undefined {
  const given = values.text("mode");
  return queueModes.find((mode) => mode === given);
}
