// The REST API v10 that the fake supports, each route as strict about its parameters as the real one. No HTTP in this file.
import { z } from "zod";
import { apiError, invalidForm, noContent, ok, unknownChannel, unknownMessage, type ApiResult } from "./errors.ts";
import { respondToInteraction, interactionMessage } from "./interactions.ts";
import { messageBodyOf, type MessageBody } from "./message-body.ts";
import { applicationObject, channelObject, gatewayFields, messageObject } from "./objects.ts";
import type { Channel, DiscordState, StoredMessage } from "./state.ts";

export interface RouteContext {
  state: DiscordState;
  dispatch: (type: string, data: Record<string, unknown>) => void;
  filesRoot: string;
  gatewayUrl: string;
  shards: number;
  /** The Message Content Intent is switched on. */
  messageContent: boolean;
  /** The identifies that are left today. */
  identifiesLeft: () => number;
  /** How many of the bot's messages came before those whose nonces are remembered. */
  noncesFrom: number;
  /** Channels in which the bot may not write, by id: the error of every call. */
  refusals: ReadonlyMap<string, ApiResult>;
  /** Channels in which the bot lacks the permission Attach Files. */
  withoutFiles: ReadonlySet<string>;
}

export interface RouteCall {
  method: string;
  /** The path below the API's root, split at `/` and decoded. */
  path: readonly string[];
  query: URLSearchParams;
  body: Record<string, unknown>;
}

const CreateDirect = z.object({ recipient_id: z.string().regex(/^\d+$/) });
const Thread = z.object({ name: z.string().min(1).max(100) });
const Commands = z
  .array(
    z.looseObject({
      name: z
        .string()
        .regex(/^[-_'\p{L}\p{N}]{1,32}$/u)
        .refine((name) => name === name.toLowerCase()),
      description: z.string().min(1).max(100),
      options: z
        .array(
          z.looseObject({
            type: z.number().int().min(1).max(11),
            name: z.string().regex(/^[-_\p{L}\p{N}]{1,32}$/u),
            description: z.string().min(1).max(100),
          }),
        )
        .max(25)
        .optional(),
    }),
  )
  .max(100);

/** Runs a call. Returns null for an unknown route. */
export function callRoute(context: RouteContext, call: RouteCall): ApiResult | null {
  const { state } = context;
  const [root = "", id = "", ...rest] = call.path;
  const at = `${call.method} /${[root, ...(root === "channels" || root === "interactions" || root === "webhooks" ? [] : [id]), ...rest.map(template)].join("/")}`;
  if (root === "channels") return channelCall(context, call, id, rest);
  if (root === "interactions")
    return rest[1] === "callback" ? respondToInteraction(context, id, rest[0] ?? "", call.body) : null;
  if (root === "webhooks") return interactionMessage(context, call, id, rest);
  switch (at) {
    case "GET /gateway":
      return ok({ url: context.gatewayUrl });
    case "GET /gateway/bot": {
      const remaining = context.identifiesLeft();
      const limit = { total: 1_000, remaining, reset_after: 3_600_000, max_concurrency: 1 };
      return ok({ url: context.gatewayUrl, shards: context.shards, session_start_limit: limit });
    }
    case "GET /users/@me":
      return ok({ ...state.bot, verified: true, mfa_enabled: false, locale: "en-US", flags: 0 });
    case "POST /users/@me/channels": {
      const given = CreateDirect.safeParse(call.body);
      if (!given.success) return invalidForm({ recipient_id: { code: "BASE_TYPE_REQUIRED", message: "required" } });
      return ok(channelObject(state.directChannel(given.data.recipient_id)));
    }
    case "GET /applications/@me":
    case "GET /oauth2/applications/@me":
      return ok(applicationObject(state, context.messageContent));
    case `PUT /applications/${id}/commands`: {
      if (id !== state.applicationId) return apiError(404, 10_002, "Unknown Application");
      const given = Commands.safeParse(call.body["list"]);
      if (!given.success)
        return invalidForm({ name: { code: "APPLICATION_COMMAND_INVALID_NAME", message: given.error.message } });
      state.commands = given.data;
      return ok(
        given.data.map((command) => ({ id: state.nextId(), application_id: id, version: "1", type: 1, ...command })),
      );
    }
    default:
      return null;
  }
}

/** A path segment, with `{}` for an id. */
export function template(segment: string): string {
  return /^\d+$/.test(segment) ? "{}" : segment;
}

function channelCall(context: RouteContext, call: RouteCall, id: string, rest: readonly string[]): ApiResult | null {
  const { state } = context;
  if (!/^\d{1,20}$/.test(id))
    return invalidForm({ channel_id: { code: "NUMBER_TYPE_COERCE", message: `Value "${id}" is not snowflake.` } });
  const channel = state.channels.get(id);
  if (channel === undefined) return unknownChannel;
  const refusal = context.refusals.get(id) ?? context.refusals.get(`${id}/${rest[0] ?? ""}`);
  if (refusal !== undefined) return refusal;
  const [kind, messageId, ...more] = rest;
  if (kind === undefined) return call.method === "GET" ? ok(channelObject(channel)) : null;
  if (kind === "typing" && call.method === "POST") {
    state.typing.set(id, (state.typing.get(id) ?? 0) + 1);
    return noContent;
  }
  if (kind === "threads" && call.method === "POST") return startThread(context, channel, call.body);
  if (kind !== "messages") return null;
  if (messageId === undefined) {
    if (call.method === "POST") return createMessage(context, channel, call.body);
    return call.method === "GET" ? listMessages(context, channel, call.query) : null;
  }
  const message = state.messages.get(messageId);
  if (message === undefined || message.channelId !== id) return unknownMessage;
  if (more.length === 0) return messageCall(context, call, message);
  const [what, emoji = "", who] = more;
  if (what === "threads" && call.method === "POST") return startThread(context, channel, call.body);
  if (what !== "reactions" || who !== "@me") return null;
  if (!/^(?:\p{Extended_Pictographic}|\w+:\d+$)/u.test(emoji)) return apiError(400, 10_014, "Unknown Emoji");
  if (call.method === "PUT") message.reactions.add(emoji);
  else message.reactions.delete(emoji);
  return noContent;
}

function messageCall(
  { state, dispatch, filesRoot }: RouteContext,
  call: RouteCall,
  message: StoredMessage,
): ApiResult | null {
  if (call.method === "GET") return ok(messageObject(state, message, filesRoot));
  if (call.method === "DELETE") {
    state.messages.delete(message.id);
    const guildId = state.channels.get(message.channelId)?.guild_id;
    dispatch("MESSAGE_DELETE", {
      id: message.id,
      channel_id: message.channelId,
      ...(guildId === undefined ? {} : { guild_id: guildId }),
    });
    return noContent;
  }
  if (call.method !== "PATCH") return null;
  if (message.author.id !== state.bot.id)
    return apiError(403, 50_005, "Cannot edit a message authored by another user");
  const body = messageBodyOf(state, message.channelId, call.body, true);
  if ("status" in body) return body;
  Object.assign(message, {
    ...(body.content === undefined ? {} : { content: body.content }),
    ...(body.components === undefined ? {} : { components: body.components }),
    editedAt: new Date().toISOString(),
  });
  const edited = messageObject(state, message, filesRoot);
  dispatch("MESSAGE_UPDATE", { ...edited, ...gatewayFields(state, message.channelId, message.author) });
  return ok(edited);
}

function createMessage(context: RouteContext, channel: Channel, given: Record<string, unknown>): ApiResult {
  const { state, filesRoot } = context;
  const body = messageBodyOf(state, channel.id, given, false);
  if ("status" in body) return body;
  const { nonce } = body;
  if (body.files.length > 0 && context.withoutFiles.has(channel.id))
    return apiError(403, 50_013, "Missing Permissions");
  if (nonce !== null && body.enforceNonce) {
    const first = state.sent
      .slice(context.noncesFrom)
      .find((sent) => sent.channelId === channel.id && sent.nonce === nonce);
    if (first !== undefined) {
      state.repeatedSends += 1;
      return ok(messageObject(state, first, filesRoot));
    }
  }
  return ok(messageObject(state, addBotMessage(context, channel.id, body), filesRoot));
}

/** Stores a message of the bot and dispatches it, to the bot as well. */
function addBotMessage(context: RouteContext, channelId: string, body: MessageBody): StoredMessage {
  const { state, dispatch, filesRoot } = context;
  const { nonce, replyToId, flags, files } = body;
  const content = { content: body.content ?? "", components: body.components ?? [] };
  const message = state.addMessage({ channelId, author: state.bot, nonce, replyToId, flags, files, ...content });
  dispatch("MESSAGE_CREATE", {
    ...messageObject(state, message, filesRoot),
    ...gatewayFields(state, channelId, state.bot),
  });
  return message;
}

function listMessages({ state, filesRoot }: RouteContext, channel: Channel, query: URLSearchParams): ApiResult {
  const limit = Number(query.get("limit") ?? 50);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    return invalidForm({ limit: { code: "NUMBER_TYPE_MAX", message: "int value should be between 1 and 100." } });
  const all = [...state.messages.values()].filter((message) => message.channelId === channel.id);
  const after = query.get("after");
  const found = after === null ? all.slice(-limit) : all.filter(({ id }) => BigInt(id) > BigInt(after)).slice(0, limit);
  // Newest first, as the real service returns them.
  return ok(found.toReversed().map((message) => messageObject(state, message, filesRoot)));
}

function startThread({ state, dispatch }: RouteContext, parent: Channel, body: Record<string, unknown>): ApiResult {
  const given = Thread.safeParse(body);
  if (!given.success) return invalidForm({ name: { code: "BASE_TYPE_REQUIRED", message: "required" } });
  if (parent.guild_id === undefined) return apiError(400, 50_024, "Cannot execute action on this channel type");
  const thread = state.addChannel({ type: 11, name: given.data.name, guild_id: parent.guild_id, parent_id: parent.id });
  dispatch("THREAD_CREATE", { ...channelObject(thread), newly_created: true });
  return { status: 201, body: channelObject(thread) };
}
