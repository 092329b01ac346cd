// A strict fake of Discord: REST API v10 and gateway for one bot in one guild and, for the test, the people who write to it and the
// faults it can have. Tests with discord.js, an independent client, check that it behaves like the real service.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { usualLimits, type RateLimits } from "./buckets.ts";
import type { ApiResult } from "./errors.ts";
import { Gateway, type GatewayOptions } from "./gateway.ts";
import { channelObject, gatewayFields, interactionObject, messageObject } from "./objects.ts";
import type { RouteContext } from "./routes.ts";
import { createRestServer } from "./server.ts";
import { DiscordState, type DiscordFault, type Interaction, type StoredMessage } from "./state.ts";
import { closeServer } from "../close-server.ts";

export type { DiscordFault, Interaction as DiscordInteraction, StoredMessage as DiscordMessage };

export interface DiscordPeerOptions extends Partial<GatewayOptions> {
  token?: string;
  username?: string;
  limits?: Partial<RateLimits>;
  /** The clock of the limits, in milliseconds. Default: performance.now(). */
  now?: () => number;
  identifiesLeft?: number;
  /** How far the ids of messages are behind the clock of this machine. Default 0. */
  clockBehindMs?: number;
}

export interface WrittenMessage {
  /** The person's id. Default `people.ann`. */
  from?: string;
  /** Default: the direct conversation with the person. */
  channel?: string;
  replyToId?: string;
  files?: readonly { name: string; mediaType: string; content: Buffer }[];
  /** Fields of the message that replace or extend the usual ones. */
  fields?: Record<string, unknown>;
}

export type DiscordPeer = Awaited<ReturnType<typeof startDiscordPeer>>;

/** People of the guild. */
const people = { ann: "100000000000000042", bob: "100000000000000043" };

export async function startDiscordPeer(options: DiscordPeerOptions = {}) {
  const token = options.token ?? "MTAwMDAwMDAwMDAwMDAwMDAx.stand-in.token-of-a-bot-for-tests";
  const state = new DiscordState(options.username ?? "parley", options.clockBehindMs);
  let port = 0;
  const gatewayUrl = () => `ws://127.0.0.1:${port}`;
  const gateway = new Gateway(
    state,
    token,
    {
      heartbeatMs: options.heartbeatMs ?? 41_250,
      messageContent: options.messageContent ?? true,
      identifyEveryMs: options.identifyEveryMs ?? 0,
      shards: options.shards ?? 1,
    },
    gatewayUrl,
  );
  const refusals = new Map<string, ApiResult>();
  const withoutFiles = new Set<string>();
  let noncesFrom = 0;
  const dispatch = (type: string, data: Record<string, unknown>): void => {
    gateway.dispatch(type, data);
    state.changed();
  };
  const context = (): RouteContext => ({
    state,
    dispatch,
    filesRoot: `http://127.0.0.1:${port}/attachments`,
    gatewayUrl: gatewayUrl(),
    shards: options.shards ?? 1,
    messageContent: options.messageContent ?? true,
    identifiesLeft: () => (options.identifiesLeft ?? 1_000) - gateway.identified,
    noncesFrom,
    refusals,
    withoutFiles,
  });
  const server = createRestServer(state, token, { ...usualLimits, ...options.limits }, context, options.now);
  gateway.attach(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  for (const id of Object.values(people)) state.person(id);
  const general = state.addChannel({ type: 0, name: "general", guild_id: state.guildId });

  const dispatchMessage = (type: string, message: StoredMessage): void =>
    dispatch(type, {
      ...messageObject(state, message, context().filesRoot),
      ...gatewayFields(state, message.channelId, message.author),
    });
  const interact = (
    channelId: string,
    messageId: string | null,
    from: string,
    content: { type: number; data: Record<string, unknown>; message?: Record<string, unknown> },
  ): Interaction => {
    const interaction = state.addInteraction(channelId, messageId);
    dispatch("INTERACTION_CREATE", interactionObject(state, interaction, state.person(from), content));
    return interaction;
  };
  const channelOf = (from: string, channel: string | undefined): string => channel ?? state.directChannel(from).id;

  const peer = {
    /** The value for `api_root`. */
    url: `http://127.0.0.1:${port}/api/v10`,
    port,
    token,
    bot: state.bot,
    applicationId: state.applicationId,
    guildId: state.guildId,
    /** A text channel of the guild. */
    channelId: general.id,
    people,
    gateway,
    calls: state.calls,
    typing: state.typing,
    /** The messages that people have seen, in order, including those that were never acknowledged to the sender. */
    get sent(): readonly StoredMessage[] {
      return state.sent;
    },
    /** Repeated sends that were answered with the first message. */
    get repeatedSends(): number {
      return state.repeatedSends;
    },
    /** The slash commands that the bot has registered. */
    get commands() {
      return state.commands as { name: string; description: string }[];
    },
    message: (id: string) => state.messages.get(id),
    /** Writes a message as a person; returns its id. */
    say(text: string, { from = people.ann, channel, replyToId, files = [], fields = {} }: WrittenMessage = {}): string {
      const message = state.addMessage({
        channelId: channelOf(from, channel),
        author: state.person(from),
        content: text,
        replyToId: replyToId ?? null,
        files: files.map((file) => ({ id: state.nextId(), ...file })),
        fields,
      });
      dispatchMessage("MESSAGE_CREATE", message);
      return message.id;
    },
    /** Delivers a message again, as after a lost connection. */
    redeliver: (id: string) => dispatchMessage("MESSAGE_CREATE", state.messages.get(id) as StoredMessage),
    edit(id: string, text: string): void {
      const message = state.messages.get(id) as StoredMessage;
      Object.assign(message, { content: text, editedAt: new Date().toISOString() });
      dispatchMessage("MESSAGE_UPDATE", message);
    },
    directChannelId: (from: string = people.ann) => state.directChannel(from).id,
    startThread(name: string, parent: string = general.id): string {
      const thread = state.addChannel({ type: 11, name, guild_id: state.guildId, parent_id: parent });
      dispatch("THREAD_CREATE", { ...channelObject(thread), newly_created: true });
      return thread.id;
    },
    /** Presses a button of a message as a person. */
    press(messageId: string, label: string, from: string = people.ann): Interaction {
      const message = state.messages.get(messageId);
      const button = message === undefined ? undefined : buttonsOf(message).find((one) => one.label === label);
      if (message === undefined || button === undefined) throw new Error(`message ${messageId} has no button ${label}`);
      return interact(message.channelId, messageId, from, {
        type: 3,
        data: { custom_id: button.customId, component_type: 2 },
        message: messageObject(state, message, context().filesRoot),
      });
    },
    /** Uses a slash command as a person. */
    slash(name: string, text?: string, { from = people.ann, channel }: WrittenMessage = {}): Interaction {
      const data = {
        id: state.nextId(),
        name,
        type: 1,
        ...(text === undefined ? {} : { options: [{ name: "text", type: 3, value: text }] }),
      };
      return interact(channelOf(from, channel), null, from, { type: 2, data });
    },
    /** Delivers an interaction again. */
    repeat: (interaction: Interaction, data: Record<string, unknown>, from: string = people.ann): void =>
      dispatch("INTERACTION_CREATE", interactionObject(state, interaction, state.person(from), { type: 2, data })),
    /** Any other event. */
    dispatch,
    /** Queues a fault for the next call of a route such as `POST /channels/{}/messages` (`*`: any). */
    fail: (route: string, fault: DiscordFault) => state.addFault(route, fault),
    /** Every call for the channel, or for a part of it such as `<id>/messages`, returns this error. */
    refuse: (channel: string, status: number, code: number, message: string) =>
      void refusals.set(channel, { status, body: { message, code } }),
    /** Forgets the nonces of all messages, as the service does after a few minutes. */
    forgetNonces: () => void (noncesFrom = state.sent.length),
    /** Channels in which the bot lacks the permission Attach Files; a test adds and deletes them. */
    withoutFiles,
    untilSent: (count: number) =>
      state.until(`${count} messages`, () => (state.sent.length >= count ? state.sent : null)),
    untilCalls: (route: string, count: number) =>
      state.until(`${count} calls of ${route}`, () => {
        const calls = state.calls.filter((call) => call.route === route);
        return calls.length >= count ? calls : null;
      }),
    until: <Value>(what: string, done: () => Value | null) => state.until(what, done),
    async close(): Promise<void> {
      gateway.close();
      await closeServer(server);
    },
    [Symbol.asyncDispose]: () => peer.close(),
  };
  return peer;
}

/** The buttons of a message. */
export function buttonsOf({ components }: Pick<StoredMessage, "components">): { label: string; customId: string }[] {
  const rows = components as { components: { label: string; custom_id: string }[] }[];
  return rows.flatMap((row) => row.components.map(({ label, custom_id: customId }) => ({ label, customId })));
}
