// Schemas of the used parts of Discord's objects. Unknown fields are ignored, so that additions by Discord cause no errors.
import { z } from "zod";

export const Snowflake = z.string().regex(/^\d{1,20}$/);

export const User = z.object({
  id: Snowflake,
  username: z.string().default(""),
  global_name: z.string().nullish(),
  bot: z.boolean().default(false),
});
export type User = z.infer<typeof User>;

const Member = z.object({ nick: z.string().nullish() });

const Attachment = z.object({
  id: Snowflake,
  filename: z.string().default("file"),
  size: z.number().nonnegative().nullish(),
  url: z.string().default(""),
  content_type: z.string().nullish(),
});

export const Channel = z.object({
  id: Snowflake,
  type: z.number().int(),
  guild_id: Snowflake.nullish(),
  parent_id: Snowflake.nullish(),
  last_message_id: Snowflake.nullish(),
});
export type Channel = z.infer<typeof Channel>;

/** Where an event happened. */
export const Place = z.object({
  channel_id: Snowflake,
  guild_id: Snowflake.optional(),
  channel_type: z.number().int().optional(),
});
export type Place = z.infer<typeof Place>;

const Snapshot = z.object({
  message: z.object({ content: z.string().default(""), attachments: z.array(Attachment).default([]) }),
});

export const Message = z.object({
  ...Place.shape,
  id: Snowflake,
  type: z.number().int().default(0),
  author: User,
  member: Member.optional(),
  webhook_id: Snowflake.optional(),
  content: z.string().default(""),
  timestamp: z.string().default(""),
  edited_timestamp: z.string().nullish(),
  mentions: z.array(User.extend({ member: Member.optional() })).default([]),
  attachments: z.array(Attachment).default([]),
  sticker_items: z.array(z.object({ name: z.string() })).default([]),
  message_reference: z.object({ type: z.number().int().default(0) }).optional(),
  message_snapshots: z.array(Snapshot).optional().catch(undefined),
  referenced_message: z
    .object({ id: Snowflake, content: z.string().default(""), author: User })
    .nullish()
    .catch(undefined),
});
export type Message = z.infer<typeof Message>;

/** Option values of a slash command are texts, numbers or switches. */
const Option = z.object({ value: z.union([z.string(), z.number(), z.boolean()]).optional() });

export const Interaction = z.object({
  id: Snowflake,
  application_id: Snowflake,
  token: z.string().regex(/^[\w.:=-]+$/),
  type: z.number().int(),
  channel_id: Snowflake,
  channel: Channel.optional().catch(undefined),
  guild_id: Snowflake.optional(),
  user: User.optional(),
  member: Member.extend({ user: User }).optional(),
  message: z.object({ id: Snowflake, content: z.string().default("") }).optional(),
  data: z
    .object({ custom_id: z.string().optional(), name: z.string().optional(), options: z.array(Option).default([]) })
    .optional(),
});
export type Interaction = z.infer<typeof Interaction>;

export const Deleted = Place.extend({ id: Snowflake });

export const Reaction = Place.extend({
  user_id: Snowflake,
  message_id: Snowflake,
  message_author_id: Snowflake.optional(),
  emoji: z.object({ id: Snowflake.nullish(), name: z.string().nullish() }),
  member: Member.extend({ user: User.optional() }).optional(),
});

export const Ready = z.object({ session_id: z.string().min(1), resume_gateway_url: z.url({ protocol: /^wss?$/ }) });

export const GatewayBot = z.object({
  url: z.url({ protocol: /^wss?$/ }),
  session_start_limit: z.object({ remaining: z.number(), reset_after: z.number() }),
});

export const ApiError = z.object({ code: z.number().default(0), message: z.string(), errors: z.unknown().optional() });
export const RateLimited = z.object({ retry_after: z.number().nonnegative(), global: z.boolean().optional() });
