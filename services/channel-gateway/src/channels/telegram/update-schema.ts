// Schemas of the used parts of Telegram's updates. Unknown fields are ignored, so that additions by Telegram cause no errors.
import { z } from "zod";

export const User = z.object({
  id: z.number().int(),
  is_bot: z.boolean().default(false),
  first_name: z.string().default(""),
  last_name: z.string().optional(),
  username: z.string().optional(),
});
export type User = z.infer<typeof User>;

const Chat = z.object({
  id: z.number().int(),
  type: z.string(),
  title: z.string().optional(),
  username: z.string().optional(),
});

const Entity = z.object({
  type: z.string(),
  offset: z.number().int().nonnegative(),
  length: z.number().int().nonnegative(),
  user: User.optional(),
});
export type Entity = z.infer<typeof Entity>;

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
const Details = z.object({
  file_id: z.string().optional(),
  file_name: z.string().optional(),
  file_size: z.number().nonnegative().optional(),
  emoji: z.string().optional(),
});
/** Of a kind. Telegram lists a photo in several sizes, the largest last. */
export const Attachment = z.union([
  Details,
  z
    .array(Details)
    .nonempty()
    .transform((sizes) => sizes.at(-1) ?? {}),
]);

/** The author of a forwarded message: a person, a person with a hidden account, a group or a channel. */
const ForwardOrigin = z.looseObject({
  sender_user: User.optional(),
  sender_user_name: z.string().optional(),
  sender_chat: Chat.optional(),
  chat: Chat.optional(),
});

/** The latest date that JavaScript represents, in seconds. */
const maxDate = 8_640_000_000_000;

/** Its attachment has the name of its kind. */
export const Message = z.looseObject({
  message_id: z.number().int(),
  /** Seconds since 1970. */
  date: z.number().int().nonnegative().max(maxDate).optional().catch(undefined),
  message_thread_id: z.number().int().optional(),
  is_topic_message: z.boolean().optional(),
  from: User.optional(),
  sender_chat: Chat.optional(),
  chat: Chat,
  text: z.string().optional(),
  entities: z.array(Entity).optional(),
  caption: z.string().optional(),
  caption_entities: z.array(Entity).optional(),
  media_group_id: z.string().optional(),
  forward_origin: ForwardOrigin.optional().catch({}),
  /** Used before Bot API 7.0. */
  forward_date: z.number().optional(),
  reply_to_message: z
    .object({
      from: User.optional(),
      sender_chat: Chat.optional(),
      text: z.string().optional(),
      caption: z.string().optional(),
      forward_origin: z.unknown().optional(),
      forward_date: z.unknown().optional(),
      forum_topic_created: z.unknown().optional(),
    })
    .optional(),
  quote: z.object({ text: z.string() }).optional().catch(undefined),
});
export type Message = z.infer<typeof Message>;

/** A press of a button. The message is missing if it is too old. */
export const CallbackQuery = z.object({
  id: z.string(),
  from: User,
  message: Message.optional().catch(undefined),
  data: z.string().optional(),
});

/** The bot was added to or removed from a chat, or its rights there changed. */
export const MembershipUpdate = z.object({ chat: Chat, from: User, new_chat_member: z.object({ status: z.string() }) });

/** Custom reactions have no `emoji`. */
const Reactions = z.array(z.object({ emoji: z.string().optional() }));

/** The reactions of a person or an anonymous administrator to a message changed. */
export const ReactionUpdate = z.object({
  chat: Chat,
  user: User.optional(),
  message_id: z.number().int(),
  old_reaction: Reactions,
  new_reaction: Reactions,
});

/** One raw update; only its id is guaranteed. */
export const Update = z.looseObject({ update_id: z.number().int() });
export type Update = z.infer<typeof Update>;
