// Objects of the API as JSON, from the state. Pure.
import type { Channel, DiscordState, Interaction, StoredFile, StoredMessage, User } from "./state.ts";

export function applicationObject(
  { applicationId, bot }: DiscordState,
  messageContent: boolean,
): Record<string, unknown> {
  return {
    id: applicationId,
    name: bot.username,
    icon: null,
    description: "",
    summary: "",
    bot,
    bot_public: true,
    bot_require_code_grant: false,
    owner: bot,
    team: null,
    verify_key: "00".repeat(32),
    // GATEWAY_MESSAGE_CONTENT_LIMITED: the intent of a bot that is not verified.
    flags: messageContent ? 1 << 19 : 0,
    hook: true,
  };
}

export function channelObject(channel: Channel): Record<string, unknown> {
  const thread =
    channel.type === 11
      ? {
          thread_metadata: { archived: false, auto_archive_duration: 1440, archive_timestamp: time(0), locked: false },
          message_count: 0,
          member_count: 1,
          owner_id: "1",
          rate_limit_per_user: 0,
        }
      : { position: 0, permission_overwrites: [] };
  return { flags: 0, ...thread, ...channel };
}

/** A message as REST and the gateway return it. `filesRoot` is where attachments are downloaded. */
export function messageObject(state: DiscordState, message: StoredMessage, filesRoot: string): Record<string, unknown> {
  const replied = message.replyToId === null ? undefined : state.messages.get(message.replyToId);
  return {
    id: message.id,
    type: message.type,
    channel_id: message.channelId,
    author: message.author,
    content: message.content,
    timestamp: time(message.atMs),
    edited_timestamp: message.editedAt,
    tts: false,
    mention_everyone: /@everyone|@here/.test(message.content),
    mentions: mentionsIn(state, message, replied),
    mention_roles: [],
    attachments: message.files.map((file) => attachmentObject(file, message.channelId, filesRoot)),
    embeds: [],
    pinned: false,
    components: message.components,
    flags: message.flags,
    ...(message.nonce === null ? {} : { nonce: message.nonce }),
    ...(message.replyToId === null
      ? {}
      : {
          message_reference: { type: 0, message_id: message.replyToId, channel_id: message.channelId },
          referenced_message:
            replied === undefined ? null : messageObject(state, { ...replied, replyToId: null }, filesRoot),
        }),
    ...message.fields,
  };
}

/** What the gateway adds to a message. */
export function gatewayFields(state: DiscordState, channelId: string, author: User): Record<string, unknown> {
  const channel = state.channels.get(channelId);
  const { guild_id: guildId, type } = channel ?? {};
  return { channel_type: type, ...(guildId === undefined ? {} : { guild_id: guildId, member: memberObject(author) }) };
}

function memberObject(user: User): Record<string, unknown> {
  return { nick: null, roles: [], joined_at: time(0), deaf: false, mute: false, flags: 0, user };
}

export function interactionObject(
  state: DiscordState,
  interaction: Interaction,
  user: User,
  content: { type: number; data: Record<string, unknown>; message?: Record<string, unknown> },
): Record<string, unknown> {
  const channel = state.channels.get(interaction.channelId);
  return {
    id: interaction.id,
    application_id: state.applicationId,
    token: interaction.token,
    version: 1,
    channel_id: interaction.channelId,
    ...(channel === undefined ? {} : { channel: { ...channelObject(channel), permissions: "0" } }),
    ...(channel?.guild_id === undefined
      ? { user, context: 1 }
      : { guild_id: channel.guild_id, member: { ...memberObject(user), permissions: "0" }, context: 0 }),
    app_permissions: "0",
    locale: "en-US",
    entitlements: [],
    authorizing_integration_owners: {},
    attachment_size_limit: 10 * 1024 * 1024,
    ...content,
  };
}

export function guildObject(state: DiscordState): Record<string, unknown> {
  const channels = [...state.channels.values()].filter(({ guild_id: guildId }) => guildId === state.guildId);
  return {
    id: state.guildId,
    name: "Guild",
    owner_id: state.bot.id,
    afk_timeout: 300,
    verification_level: 0,
    default_message_notifications: 0,
    explicit_content_filter: 0,
    mfa_level: 0,
    nsfw_level: 0,
    premium_tier: 0,
    premium_progress_bar_enabled: false,
    preferred_locale: "en-US",
    system_channel_flags: 0,
    features: [],
    emojis: [],
    stickers: [],
    roles: [
      {
        id: state.guildId,
        name: "@everyone",
        color: 0,
        hoist: false,
        position: 0,
        permissions: "0",
        managed: false,
        mentionable: false,
        flags: 0,
      },
    ],
    joined_at: time(0),
    large: false,
    unavailable: false,
    member_count: 2,
    members: [memberObject(state.bot)],
    channels: channels.filter(({ type }) => type !== 11).map(channelObject),
    threads: channels.filter(({ type }) => type === 11).map(channelObject),
    voice_states: [],
    presences: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  };
}

function attachmentObject(file: StoredFile, channelId: string, filesRoot: string): Record<string, unknown> {
  const url = `${filesRoot}/${channelId}/${file.id}/${encodeURIComponent(file.name)}?ex=1&is=1&hm=1`;
  return {
    id: file.id,
    filename: file.name,
    size: file.content.length,
    url,
    proxy_url: url,
    content_type: file.mediaType,
  };
}

function mentionsIn(state: DiscordState, message: StoredMessage, replied: StoredMessage | undefined): User[] {
  const ids = [...message.content.matchAll(/<@!?(\d+)>/g)].map(([, id = ""]) => id);
  const named = ids
    .map((id) => (id === state.bot.id ? state.bot : state.users.get(id)))
    .filter((user) => user !== undefined);
  // A reply notifies the author of the message that it answers.
  return [...new Set(replied === undefined ? named : [...named, replied.author])];
}

function time(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000+00:00");
}
