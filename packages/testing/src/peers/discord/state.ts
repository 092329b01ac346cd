// The state of the fake of Discord: people, channels, messages, interactions, queued faults, and waiters. The rules of the REST API
// are in `routes.ts`, those of the gateway in `gateway.ts`.
import { randomBytes } from "node:crypto";
import { PeerState } from "../peer-state.ts";

/** Discord's epoch: the first millisecond of 2015. */
const epochMs = 1_420_070_400_000;

export interface User {
  id: string;
  username: string;
  global_name: string | null;
  discriminator: string;
  avatar: null;
  bot: boolean;
}

export interface Channel {
  id: string;
  /** 0: text channel of a guild · 1: direct messages · 11: public thread. */
  type: 0 | 1 | 11;
  name?: string;
  guild_id?: string;
  parent_id?: string;
  recipients?: User[];
  last_message_id: string | null;
  [field: string]: unknown;
}

export interface StoredFile {
  id: string;
  name: string;
  mediaType: string;
  content: Buffer;
}

/** A message of anyone, as the platform stores it. */
export interface StoredMessage {
  id: string;
  channelId: string;
  author: User;
  content: string;
  /** 0: ordinary · 19: a reply. */
  type: number;
  nonce: string | null;
  replyToId: string | null;
  components: unknown[];
  flags: number;
  files: StoredFile[];
  editedAt: string | null;
  /** The reactions of the bot. */
  reactions: Set<string>;
  atMs: number;
  /** Fields of the API object that replace or extend the usual ones. */
  fields: Record<string, unknown>;
}

/** One call that reached the fake. */
export interface DiscordCall {
  /** Method and path with `{}` for each id, for example `POST /channels/{}/messages`. */
  route: string;
  path: string;
  body: Record<string, unknown>;
  /** HTTP status of the answer; null where the call was never answered. */
  status: number | null;
}

/**
 * A fault that replaces or follows the work of the next call of a route.
 * too_many: 429 with `retry_after` · server_error: 500 before any work · bad_gateway: 502 with a page that is not JSON ·
 * hang_after_commit: done, never answered · reset_after_commit, reset_before_commit: the connection is cut · refuse: an API error.
 */
export type DiscordFault =
  | { kind: "too_many"; retryAfterSeconds: number; global?: true }
  | { kind: "server_error" | "bad_gateway" | "hang_after_commit" | "reset_after_commit" | "reset_before_commit" }
  | { kind: "refuse"; status: number; code: number; message: string };

/** A use of a button or of a slash command. */
export interface Interaction {
  id: string;
  token: string;
  channelId: string;
  atMs: number;
  /** The message with the button; null for a slash command. */
  messageId: string | null;
  /** The type of the first response; null until there is one. */
  acknowledged: number | null;
  /** How long the first response took. */
  acknowledgedAfterMs: number | null;
  /** The texts that the person was shown in response, oldest first; an edit replaces the last. */
  responses: { content: string; ephemeral: boolean }[];
}

export class DiscordState extends PeerState<DiscordFault> {
  readonly applicationId: string;
  readonly bot: User;
  readonly guildId: string;
  readonly users = new Map<string, User>();
  readonly channels = new Map<string, Channel>();
  readonly messages = new Map<string, StoredMessage>();
  readonly files = new Map<string, StoredFile>();
  readonly interactions = new Map<string, Interaction>();
  readonly calls: DiscordCall[] = [];
  /** Calls of `typing` by channel. */
  readonly typing = new Map<string, number>();
  commands: unknown[] = [];
  /** Repeated sends that were answered with the first message. */
  repeatedSends = 0;
  readonly #clockBehindMs: number;
  #lastId = 0n;

  constructor(username: string, clockBehindMs = 0) {
    super("Discord");
    this.#clockBehindMs = clockBehindMs;
    this.applicationId = this.nextId();
    this.bot = { ...this.#userOf(this.nextId(), username), bot: true };
    this.guildId = this.nextId();
  }

  /** A new snowflake, greater than all before. */
  nextId(): string {
    const now = BigInt(Date.now() - this.#clockBehindMs - epochMs) << 22n;
    this.#lastId = now > this.#lastId ? now : this.#lastId + 1n;
    return String(this.#lastId);
  }

  /** The person with this id; created at the first use. */
  person(id: string): User {
    const known = this.users.get(id) ?? this.#userOf(id, `user_${id.slice(-4)}`);
    this.users.set(id, known);
    return known;
  }

  /** The direct conversation with a person; created at the first use. */
  directChannel(userId: string): Channel {
    const known = [...this.channels.values()].find(
      ({ type, recipients }) => type === 1 && recipients?.[0]?.id === userId,
    );
    return known ?? this.addChannel({ type: 1, recipients: [this.person(userId)] });
  }

  addChannel(channel: Omit<Channel, "id" | "last_message_id">): Channel {
    const added = { ...channel, id: this.nextId(), last_message_id: null } as Channel;
    this.channels.set(added.id, added);
    return added;
  }

  addMessage(message: Pick<StoredMessage, "channelId" | "author" | "content"> & Partial<StoredMessage>): StoredMessage {
    const added: StoredMessage = {
      id: this.nextId(),
      type: message.replyToId === undefined || message.replyToId === null ? 0 : 19,
      nonce: null,
      replyToId: null,
      components: [],
      flags: 0,
      files: [],
      editedAt: null,
      reactions: new Set(),
      atMs: Date.now(),
      fields: {},
      ...message,
    };
    this.messages.set(added.id, added);
    const channel = this.channels.get(added.channelId);
    if (channel !== undefined) channel.last_message_id = added.id;
    for (const file of added.files) this.files.set(file.id, file);
    return added;
  }

  addInteraction(channelId: string, messageId: string | null): Interaction {
    const id = this.nextId();
    const interaction: Interaction = {
      id,
      token: `interaction-${randomBytes(24).toString("base64url")}`,
      channelId,
      atMs: Date.now(),
      messageId,
      acknowledged: null,
      acknowledgedAfterMs: null,
      responses: [],
    };
    this.interactions.set(id, interaction);
    return interaction;
  }

  /** The bot's messages, in order. */
  get sent(): StoredMessage[] {
    return [...this.messages.values()].filter(({ author }) => author.id === this.bot.id);
  }

  #userOf(id: string, username: string): User {
    return { id, username, global_name: null, discriminator: "0", avatar: null, bot: false };
  }
}
