// Schemas of the used parts of Telegram's updates. Unknown fields are ignored, so that additions by Telegram cause no errors.
import { z } from "zod";

/** A person, a bot, a group or a channel. */
export const Party = z.object({
  id: z.number().int(),
  is_bot: z.boolean().default(false),
  first_name: z.string().optional(),
  last_name: z.string().optional(),
  title: z.string().optional(),
  username: z.string().optional(),
});
export type Party = z.infer<typeof Party>;

/** The name under which an account is shown. */
export function shownAs({ username, id }: Party): string {
  return `@${username ?? id}`;
}

const Chat = Party.extend({ type: z.string() });

const Entity = z.object({
  type: z.string(),
  offset: z.number().int().nonnegative(),
  length: z.number().int().nonnegative(),
  user: Party.optional(),
});

/** The more specific kind first: an animation is also a document. */
export const attachmentKinds = [
  "photo",
  "voice",
  "video",
  "video_note",
  "audio",
  "animation",
  "document",
  "sticker",
  "location",
  "contact",
  "poll",
];

/** An attachment; a photo is several, in different sizes. */
export const Attachment = z.object({
  file_id: z.string().optional(),
  file_name: z.string().optional(),
  file_size: z.number().nonnegative().optional(),
  emoji: z.string().optional(),
});

/** What a message and the one that it replies to have in common. */
const content = {
  from: Party.optional(),
  sender_chat: Party.optional(),
  text: z.string().optional(),
  caption: z.string().optional(),
  /** The author is a person, a person with a hidden account, a group or a channel. */
  forward_origin: z
    .object({
      sender_user: Party.optional(),
      sender_user_name: z.string().optional(),
      sender_chat: Party.optional(),
      chat: Party.optional(),
    })
    .optional()
    .catch({}),
  /** Used before Bot API 7.0. */
  forward_date: z.unknown().optional(),
};

/** The latest date that JavaScript represents, in seconds. */
const maxDate = 8_640_000_000_000;

/** Its attachment has the name of its kind. */
export const Message = z.looseObject({
  ...content,
  message_id: z.number().int(),
  /** Seconds since 1970. */
  date: z.number().int().nonnegative().max(maxDate).optional().catch(undefined),
  message_thread_id: z.number().int().optional(),
  is_topic_message: z.boolean().optional(),
  chat: Chat,
  entities: z.array(Entity).optional(),
  caption_entities: z.array(Entity).optional(),
  media_group_id: z.string().optional(),
  reply_to_message: z.object({ ...content, forum_topic_created: z.unknown().optional() }).optional(),
  /** The part of the message replied to that the sender selected. */
  quote: z.object({ text: z.string() }).optional().catch(undefined),
});
export type Message = z.infer<typeof Message>;

/** A press of a button. The message is missing if it is too old. */
export const Press = z.object({
  id: z.string(),
  from: Party,
  message: Message.optional().catch(undefined),
  data: z.string().optional(),
});

/** The bot was added to or removed from a chat, or its rights there changed. */
export const Membership = z.object({ chat: Chat, from: Party, new_chat_member: z.object({ status: z.string() }) });

/** Custom reactions have no `emoji`. */
const Reactions = z.array(z.object({ emoji: z.string().optional() }));

/** The reactions of a person or an anonymous administrator to a message changed. */
export const Reaction = z.object({
  chat: Chat,
  user: Party.optional(),
  message_id: z.number().int(),
  old_reaction: Reactions,
  new_reaction: Reactions,
});

/** One raw update; only its id is guaranteed. */
export const Update = z.looseObject({ update_id: z.number().int() });
export type Update = z.infer<typeof Update>;
