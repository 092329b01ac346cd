// Webhook requests, as far as they are used. Fields of messages are parsed one message at a time: an unknown one does not affect the others.
import { z } from "zod";

const Contact = z.object({
  wa_id: z.string().optional(),
  user_id: z.string().optional(),
  profile: z.object({ name: z.string().optional() }).optional(),
});
export type Contact = z.infer<typeof Contact>;

const Value = z.object({
  metadata: z.object({ phone_number_id: z.string(), display_phone_number: z.string().default("") }),
  contacts: z.array(z.unknown()).default([]),
  messages: z.array(z.unknown()).default([]),
  statuses: z.array(z.unknown()).default([]),
});
export type Value = z.infer<typeof Value>;

export const Delivery = z.object({
  object: z.literal("whatsapp_business_account"),
  entry: z.array(z.object({ changes: z.array(z.object({ field: z.string(), value: z.unknown() })) })),
});

/** The values of the field `messages`; values of another form are left out. */
export function valuesOf(delivery: z.infer<typeof Delivery>): Value[] {
  return delivery.entry.flatMap(({ changes }) =>
    changes.flatMap(({ field, value }) => {
      const parsed = field === "messages" ? Value.safeParse(value) : undefined;
      return parsed?.success === true ? [parsed.data] : [];
    }),
  );
}

export function contactsOf({ contacts }: Value): Contact[] {
  return contacts.flatMap((contact) => Contact.safeParse(contact).data ?? []);
}

const id = z.string().min(1).max(512);
/** A number, a user id of the business, or the id of a group; each goes into addresses. */
const party = z.string().regex(/^[\w.=+-]{3,200}$/);
const text = z.string();

const Media = z.object({
  id: z.string().regex(/^\d{1,40}$/),
  mime_type: text.default(""),
  caption: text.optional(),
  filename: text.optional(),
  file_size: z.number().int().nonnegative().optional(),
});

const choice = z.object({ id: text, title: text });

export const Message = z.object({
  id,
  from: party.optional(),
  from_user_id: party.optional(),
  group_id: party.optional(),
  timestamp: z.string().regex(/^\d{1,12}$/),
  type: z.string(),
  context: z
    .object({
      id: text.optional(),
      from: text.optional(),
      forwarded: z.boolean().optional(),
      frequently_forwarded: z.boolean().optional(),
    })
    .optional(),
  text: z.object({ body: text }).optional(),
  image: Media.optional(),
  audio: Media.extend({ voice: z.boolean().optional() }).optional(),
  video: Media.optional(),
  document: Media.optional(),
  sticker: Media.optional(),
  location: z
    .object({
      latitude: z.coerce.number(),
      longitude: z.coerce.number(),
      name: text.optional(),
      address: text.optional(),
    })
    .optional(),
  contacts: z
    .array(
      z.object({
        name: z.object({ formatted_name: text.default("") }).optional(),
        phones: z.array(z.object({ phone: text.optional() })).optional(),
      }),
    )
    .optional(),
  reaction: z.object({ message_id: id, emoji: text.optional() }).optional(),
  button: z.object({ text, payload: text.optional() }).optional(),
  interactive: z.object({ type: text, button_reply: choice.optional(), list_reply: choice.optional() }).optional(),
});
export type Message = z.infer<typeof Message>;

export const mediaKinds = ["image", "audio", "video", "document", "sticker"] as const;

export const Status = z.object({
  id,
  status: text,
  recipient_id: text.optional(),
  biz_opaque_callback_data: z.string().max(512).optional(),
  errors: z.array(z.object({ code: z.number().int(), title: text.optional(), message: text.optional() })).default([]),
});
export type Status = z.infer<typeof Status>;
