// Schemas of the used parts of Slack's events, interactions and commands. Unknown fields are ignored, so that additions cause no errors.
import { z } from "zod";

/** Ids of conversations and people: they are part of addresses. */
const conversationId = z.string().regex(/^[CDG][A-Z0-9]{1,30}$/);
const personId = z.string().regex(/^[UWB][A-Z0-9]{1,30}$/);
const timestamp = z.string().regex(/^\d{1,12}\.\d{1,9}$/);

const File = z.object({
  id: z.string().max(64),
  name: z.string().nullish(),
  mimetype: z.string().nullish(),
  size: z.number().nonnegative().nullish(),
  mode: z.string().nullish(),
  url_private: z.string().max(1_900).nullish(),
  url_private_download: z.string().max(1_900).nullish(),
});
export type File = z.infer<typeof File>;

/** A shared message, as an attachment of the message that shares it. */
const Attachment = z.object({
  is_share: z.boolean().optional(),
  author_name: z.string().optional(),
  author_id: z.string().optional(),
  text: z.string().optional(),
});

/** Of a message, what an edit repeats. */
const Content = z.object({
  user: personId.optional(),
  bot_id: z.string().optional(),
  text: z.string().default(""),
  ts: timestamp,
  thread_ts: timestamp.optional(),
});

export const MessageEvent = Content.extend({
  type: z.enum(["message", "app_mention"]),
  subtype: z.string().optional(),
  channel: conversationId,
  channel_type: z.string().optional(),
  parent_user_id: z.string().optional(),
  files: z.array(File).optional().catch(undefined),
  attachments: z.array(Attachment).optional().catch(undefined),
  /** Of `message_changed` and `message_deleted`. */
  message: Content.optional().catch(undefined),
  previous_message: Content.optional().catch(undefined),
});
export type MessageEvent = z.infer<typeof MessageEvent>;

export const ReactionEvent = z.object({
  type: z.enum(["reaction_added", "reaction_removed"]),
  user: personId,
  reaction: z.string().min(1).max(200),
  item: z.object({ type: z.literal("message"), channel: conversationId, ts: timestamp }),
  item_user: z.string().optional(),
});

export const MemberEvent = z.object({
  type: z.enum(["member_joined_channel", "member_left_channel"]),
  user: personId,
  channel: conversationId,
  inviter: personId.optional(),
});

export const EventCallback = z.object({
  type: z.literal("event_callback"),
  event_id: z.string().min(1).max(100),
  event: z.looseObject({ type: z.string() }),
});

export const BlockActions = z.object({
  type: z.literal("block_actions"),
  user: z.object({ id: personId, name: z.string().optional(), username: z.string().optional() }),
  channel: z.object({ id: conversationId }),
  trigger_id: z.string().min(1).max(200),
  message: z.object({
    ts: timestamp,
    thread_ts: timestamp.optional(),
    text: z.string().default(""),
    blocks: z.array(z.looseObject({ type: z.string() })).default([]),
  }),
  actions: z.array(z.object({ type: z.literal("button"), value: z.string().min(1).max(2_000) })).min(1),
});
export type BlockActions = z.infer<typeof BlockActions>;

export const SlashCommand = z.object({
  command: z.string().regex(/^\/\S{1,100}$/),
  text: z.string().default(""),
  user_id: personId,
  user_name: z.string().optional(),
  channel_id: conversationId,
  trigger_id: z.string().min(1).max(200),
});
export type SlashCommand = z.infer<typeof SlashCommand>;

/** One frame of socket mode. */
export const Frame = z.looseObject({
  type: z.string(),
  envelope_id: z.string().min(1).max(200).optional(),
  payload: z.unknown().optional(),
  reason: z.string().optional(),
});
