// Updates as each platform sends them, with the function that reads them, for tests with hostile input. Every text that people choose for
// themselves, for a room or for a subject is NAME.
import { emailChannel } from "@parley/contracts";
import type { InboundChange, InboundDraft } from "../../src/channels/channel.ts";
import * as discord from "../../src/channels/discord/parse.ts";
import { Interaction } from "../../src/channels/discord/schema.ts";
import { receive } from "../../src/channels/email/receive.ts";
import { parseLine } from "../../src/channels/irc/line.ts";
import { parse as parseIrc } from "../../src/channels/irc/parse.ts";
import { createApi } from "../../src/channels/matrix/api.ts";
import { parse as parseMatrix, relatedIdOf } from "../../src/channels/matrix/parse.ts";
import { Rooms } from "../../src/channels/matrix/rooms.ts";
import { MatrixEvent } from "../../src/channels/matrix/schema.ts";
import { parse as parseSignal } from "../../src/channels/signal/parse.ts";
import { Intake } from "../../src/channels/slack/intake.ts";
import { People } from "../../src/channels/slack/people.ts";
import { parse as parseTelegram } from "../../src/channels/telegram/parse.ts";
import { Update } from "../../src/channels/telegram/update-schema.ts";
import { parseMessage as parseWhatsApp } from "../../src/channels/whatsapp/parse.ts";
import { Delivery, valuesOf } from "../../src/channels/whatsapp/update-schema.ts";
import { TestHost } from "./channel-host.ts";

/** What an adapter passes to the gateway, as far as all kinds have it. */
export type Input = Pick<InboundDraft, "externalId" | "conversation" | "group" | "contact" | "direct" | "replyTo">;

export interface RecordedUpdates {
  /** The person who wrote the updates, and somebody else, as ids of the platform. */
  person: string;
  owner: string;
  /** A conversation of several people that none of the updates belongs to. */
  group: string;
  updates: readonly unknown[];
  read: (update: unknown) => Input[] | Promise<Input[]>;
}

type Parsed =
  | { kind: "message"; draft: InboundDraft }
  | { kind: "change"; change: InboundChange }
  | { kind: "action"; action: Input }
  | { kind: "skipped" | "ignored" | "own" | "encrypted" };

function inputsOf(parsed: Parsed): Input[] {
  if (parsed.kind === "message") return [parsed.draft];
  if (parsed.kind === "change") return [parsed.change];
  return parsed.kind === "action" ? [parsed.action] : [];
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const name = "NAME";

const telegramPerson = { id: 43, is_bot: false, first_name: name, last_name: name, username: name };
const telegramGroup = { id: -1002, type: "supergroup", title: name, username: name };
const telegram: RecordedUpdates = {
  person: "43",
  owner: "42",
  group: "-1001",
  updates: [
    {
      message_id: 9,
      from: telegramPerson,
      chat: { ...telegramPerson, type: "private" },
      date: 1_795_000_000,
      text: "hi @Parley_Bot",
      entities: [{ type: "mention", offset: 3, length: 11 }],
    },
    {
      message_id: 10,
      message_thread_id: 3,
      is_topic_message: true,
      from: telegramPerson,
      chat: telegramGroup,
      caption: "see",
      document: { file_id: "f", file_unique_id: "u", file_name: name, file_size: 7, mime_type: "text/plain" },
      reply_to_message: { message_id: 3, from: { id: 7, is_bot: true, first_name: "Parley" }, text: "before" },
      forward_origin: { type: "user", date: 1, sender_user: telegramPerson },
    },
  ].flatMap((message) => [
    { update_id: 5, message },
    { update_id: 6, edited_message: message },
    { update_id: 7, callback_query: { id: "1", from: telegramPerson, message, data: "/approve AB12C" } },
    { update_id: 8, my_chat_member: { ...message, new_chat_member: { status: "member" } } },
  ]),
  read: (update) => {
    const { data } = Update.safeParse(update);
    const me = { id: 7, is_bot: true, first_name: "Parley", username: "Parley_Bot" };
    return data === undefined ? [] : inputsOf(parseTelegram(data, me, "main"));
  },
};

const irc: RecordedUpdates = {
  person: "account:eve",
  owner: "account:boss",
  group: "#staff",
  updates: [
    { nick: "eve", user: name, host: name, account: "eve", to: "parley", text: "hi" },
    { nick: "eve", user: name, host: name, account: "eve", to: "#agents", text: "parley: hi", id: "m1" },
    // A nick is free to choose, also by somebody who is logged in to nothing.
    { nick: name, user: name, host: name, account: "eve", to: "parley", text: "hi" },
    { nick: name, user: name, host: name, account: "", to: "parley", text: "hi" },
  ],
  read: (update) => {
    const { nick, user, host, account, to, text, id } = fieldsOf(update);
    const tags = `@account=${textOf(account)};msgid=${textOf(id)}`;
    const sent = `${tags} :${textOf(nick)}!${textOf(user)}@${textOf(host)} PRIVMSG ${textOf(to)} :${textOf(text)}`;
    const line = parseLine(sent.toWellFormed());
    if (line === null) return [];
    const context = {
      account: "main",
      nick: "parley",
      mapping: "rfc1459",
      spellings: ["#staff", "account:boss"],
    } as const;
    return inputsOf(parseIrc(line, context, new Date(0)));
  },
};

const mail = {
  from: `"${name}" <eve@test.local>`,
  to: "agent@test.local",
  subject: name,
  body: "hello",
  id: "<1@x>",
};
const email: RecordedUpdates = {
  person: "eve@test.local",
  owner: "boss@test.local",
  group: "staff@test.local",
  updates: [
    { ...mail, more: "" },
    { ...mail, more: `Reply-To: ${name}\r\nSender: ${name}\r\nReferences: <0@x> <1@x>\r\nContent-Type: text/html` },
  ],
  read: async (update) => {
    const { from, to, subject, body, more, id } = fieldsOf(update);
    const settings = emailChannel.settings.parse({
      address: "agent@test.local",
      consent: true,
      authserv_id: "mx.test.local",
      smtp_host: "127.0.0.1",
      owners: ["boss@test.local"],
      password_env: "PARLEY_CHANNEL_MAIL",
    });
    const lines = [
      "Authentication-Results: mx.test.local; dmarc=pass header.from=test.local",
      `From: ${textOf(from)}`,
      `To: ${textOf(to)}`,
      `Subject: ${textOf(subject)}`,
      `Message-ID: ${textOf(id)}`,
      textOf(more),
      "",
      textOf(body),
    ];
    const raw = Buffer.from(lines.filter((line, index) => line !== "" || index > 5).join("\r\n"));
    const result = await receive(raw, { account: "main", settings, nullSender: false });
    return result.kind === "draft" ? [result.draft] : [];
  },
};

const slackMessage = {
  type: "message",
  user: "U0EVE",
  channel: "D0EVE",
  ts: "1700000000.000100",
  text: "<@U0PARLEY> hi",
};
const inTeam = { ...slackMessage, channel: "C0TEAM", thread_ts: "1690000000.000100", username: name };
const slackEvents = [
  { ...slackMessage, user_profile: { name, display_name: name } },
  { ...inTeam, files: [{ id: "F1", name, mimetype: "text/plain", size: 7, url_private: "https://files.slack.com/a" }] },
  { ...inTeam, subtype: "message_changed", message: { ...inTeam, text: "new" }, previous_message: inTeam },
  { ...inTeam, subtype: "message_deleted", previous_message: inTeam },
  { type: "reaction_added", user: "U0EVE", reaction: name, item: { type: "message", channel: "C0TEAM", ts: "1.1" } },
];
const press = { type: "block_actions", user: { id: "U0EVE", name, username: name }, channel: { id: "C0TEAM", name } };
const slackPress = {
  ...press,
  trigger_id: "t",
  message: { ts: "1.1", text: "?" },
  actions: [{ type: "button", value: "/help" }],
};
const slackCommand = {
  command: "/parley",
  text: "help",
  user_id: "U0EVE",
  user_name: name,
  channel_id: "C0TEAM",
  trigger_id: "t",
};
const slack: RecordedUpdates = {
  person: "U0EVE",
  owner: "U0BOSS",
  group: "C0STAFF",
  updates: [
    ...slackEvents.map((event) => ({ of: "events_api", payload: { type: "event_callback", event_id: "E", event } })),
    { of: "interactive", payload: slackPress },
    { of: "slash_commands", payload: slackCommand },
  ],
  read: async (update) => {
    const { of, payload } = fieldsOf(update);
    const call = async () => ({ kind: "unreached" as const, reason: "test" });
    const identify = async () => ({ kind: "ok" as const, result: { user_id: "U0PARLEY", user: "parley", team: "T" } });
    const host = new TestHost();
    const app = { account: "main", replyInThread: true, call, people: new People(call), identify };
    await new Intake(app, host).take(textOf(of), payload);
    return [...host.accepted, ...host.changed, ...host.acted];
  },
};

const discordPerson = { id: "41", username: name, global_name: name };
const discordMessage = {
  id: "10",
  channel_id: "20",
  type: 0,
  author: discordPerson,
  content: "<@1> hello",
  timestamp: "2026-01-01T00:00:00.000000+00:00",
  mentions: [{ id: "1", username: "parley" }],
  attachments: [{ id: "50", filename: name, size: 7 }],
  member: { nick: name },
};
const inServer = { ...discordMessage, guild_id: "30", referenced_message: { ...discordMessage, id: "9" } };
const interaction = { id: "11", application_id: "60", token: "t", channel_id: "20", guild_id: "30" };
const interactionBy = {
  ...interaction,
  member: { nick: name, user: discordPerson },
  channel: { id: "20", type: 0, name },
};
const discordUpdates: RecordedUpdates = {
  person: "41",
  owner: "42",
  group: "21",
  updates: [
    { t: "MESSAGE_CREATE", d: discordMessage },
    { t: "MESSAGE_CREATE", d: inServer },
    { t: "MESSAGE_UPDATE", d: { ...inServer, edited_timestamp: "2026-01-01T00:00:01.000000+00:00" } },
    { t: "MESSAGE_DELETE", d: { id: "10", channel_id: "20", guild_id: "30" } },
    { t: "MESSAGE_REACTION_ADD", d: { ...inServer, user_id: "41", message_id: "9", emoji: { id: null, name } } },
    { t: "INTERACTION_CREATE", d: { ...interactionBy, type: 2, data: { name: "help", options: [{ value: name }] } } },
    { t: "INTERACTION_CREATE", d: { ...interactionBy, type: 3, message: { id: "10" }, data: { custom_id: "/help" } } },
  ],
  read: (update) => {
    const { t, d } = fieldsOf(update);
    const around = { account: "main", me: { id: "1" }, parentId: null, eventId: "e:1" };
    if (t === "MESSAGE_CREATE") return inputsOf(discord.parseMessage(d, around));
    if (t === "MESSAGE_UPDATE") return inputsOf(discord.parseEdit(d, around));
    if (t === "MESSAGE_DELETE") return inputsOf(discord.parseDeletion(d, around));
    if (t === "MESSAGE_REACTION_ADD") return inputsOf(discord.parseReaction(d, false, around));
    const { data } = Interaction.safeParse(d);
    return data === undefined ? [] : inputsOf(discord.parseInteraction(data, around));
  },
};

const signalId = "e1111111-1111-4111-8111-111111111111";
const envelope = {
  sourceNumber: "+15550100001",
  sourceUuid: signalId,
  sourceName: name,
  sourceDevice: 1,
  timestamp: 1_700,
};
const dataMessage = {
  timestamp: 1_700,
  message: "\ufffc hello",
  mentions: [{ start: 0, length: 1, name, number: "+15550100000", uuid: "u" }],
  attachments: [{ id: "a", contentType: "image/png", filename: name, size: 7 }],
  quote: { authorUuid: signalId, text: "before", mentions: [] },
};
const groupInfo = { groupId: "VGhpcyBpcyBhIGdyb3VwIG9mIDMyIGJ5dGVzISEhISE=", groupName: name, type: "DELIVER" };
const reaction = { emoji: "👍", targetAuthorUuid: signalId, targetSentTimestamp: 1_600 };
const signal: RecordedUpdates = {
  person: signalId,
  owner: "b2222222-2222-4222-8222-222222222222",
  group: "c3RhZmYgc3RhZmYgc3RhZmYgc3RhZmYgc3RhZmYhISE=",
  updates: [
    { dataMessage },
    { dataMessage: { ...dataMessage, groupInfo } },
    { dataMessage: { timestamp: 1_700, groupInfo, reaction } },
    { dataMessage: { timestamp: 1_700, groupInfo, remoteDelete: { timestamp: 1_600 } } },
    { editMessage: { targetSentTimestamp: 1_600, dataMessage } },
  ].map((content) => ({ account: "+15550100000", envelope: { ...envelope, ...content } })),
  read: (update) => inputsOf(parseSignal(update, { account: "main", number: "+15550100000" })),
};

const matrixEvent = { event_id: "$1", type: "m.room.message", sender: "@eve:a.org", origin_server_ts: 1_700 };
const related = { ...matrixEvent, event_id: "$0", content: { msgtype: "m.text", body: "before" } };
const relates = (content: object) => ({ ...matrixEvent, content: { msgtype: "m.text", body: "x", ...content } });
const nobody = { owners: [], allow_from: [], groups: [], dm_policy: "disabled" as const };
const matrix: RecordedUpdates = {
  person: "@eve:a.org",
  owner: "@boss:a.org",
  group: "!staff:a.org",
  updates: [
    relates({ "m.mentions": { user_ids: ["@parley:a.org"] }, body: "Parley: hi", displayname: name }),
    relates({ "m.relates_to": { rel_type: "m.thread", event_id: "$0", "m.in_reply_to": { event_id: "$0" } } }),
    relates({ "m.relates_to": { rel_type: "m.replace", event_id: "$0" }, "m.new_content": { body: "y" } }),
    relates({ msgtype: "m.image", filename: name, url: "mxc://a.org/x", info: { size: 7 } }),
    { ...relates({ "m.relates_to": { rel_type: "m.annotation", event_id: "$0", key: "👍" } }), type: "m.reaction" },
    { ...matrixEvent, type: "m.room.redaction", redacts: "$0", content: {} },
    {
      ...matrixEvent,
      type: "m.room.member",
      state_key: "@parley:a.org",
      content: { membership: "join", displayname: name },
    },
  ].flatMap((event) => [
    { event, direct: true, displayName: name },
    { event, direct: false, displayName: name },
  ]),
  read: (update) => {
    const { event, direct, displayName } = fieldsOf(update);
    const { data } = MatrixEvent.safeParse(event);
    if (data === undefined) return [];
    const me = { userId: "@parley:a.org", names: ["Parley"] };
    const target = relatedIdOf(data) === undefined ? null : MatrixEvent.parse(related);
    const roomId = "!room:a.org";
    const rooms = new Rooms(createApi("http://127.0.0.1", "t"), nobody, me.userId, new AbortController().signal);
    const member = {
      ...matrixEvent,
      type: "m.room.member",
      state_key: data.sender,
      content: { displayname: displayName },
    };
    rooms.observe(roomId, [MatrixEvent.parse(member)]);
    const nameOf = (userId: string) => rooms.nameOf(roomId, userId);
    return inputsOf(
      parseMatrix(data, { account: "main", roomId, me, direct: direct === true, related: target, nameOf }),
    );
  },
};

const whatsappMessage = { id: "wamid.1", from: "15550100001", timestamp: "1700000000" };
const messages = [
  { ...whatsappMessage, type: "text", text: { body: "hi" }, context: { id: "wamid.0", from: "15550100000" } },
  { ...whatsappMessage, type: "document", document: { id: "1", filename: name, mime_type: "a/b" }, group_id: "group" },
  { ...whatsappMessage, type: "location", location: { latitude: 1, longitude: 2, name } },
  { ...whatsappMessage, type: "contacts", contacts: [{ name: { formatted_name: name }, phones: [{ phone: name }] }] },
  { ...whatsappMessage, type: "reaction", reaction: { message_id: "wamid.0", emoji: "👍" } },
  { ...whatsappMessage, type: "button", button: { text: name, payload: "/help" } },
  { ...whatsappMessage, type: "interactive", interactive: { type: "x", button_reply: { id: "/help", title: name } } },
];
const whatsapp: RecordedUpdates = {
  person: "15550100001",
  owner: "15550100002",
  group: "staff",
  updates: messages.map((message) => ({
    object: "whatsapp_business_account",
    entry: [
      {
        changes: [
          {
            field: "messages",
            value: {
              metadata: { phone_number_id: "1" },
              contacts: [{ wa_id: "15550100001", profile: { name } }],
              messages: [message],
            },
          },
        ],
      },
    ],
  })),
  read: (update) => {
    const { data } = Delivery.safeParse(update);
    const context = { account: "main", nowMs: 1_700_000_000_000, seen: () => ({ text: "before", ofAgent: true }) };
    const values = data === undefined ? [] : valuesOf(data);
    return values.flatMap((value) => value.messages.flatMap((raw) => inputsOf(parseWhatsApp(raw, value, context))));
  },
};

/** By the name of the channel. */
export const recordedUpdates: Readonly<Record<string, RecordedUpdates>> = {
  telegram,
  irc,
  email,
  slack,
  discord: discordUpdates,
  signal,
  matrix,
  whatsapp,
};
