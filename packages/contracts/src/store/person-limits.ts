// Limits of people: messages a minute, turns and dollars a day.
import { z } from "zod";
import { ContactSchema } from "./contacts.ts";
import { Empty, storeRequest } from "./shared.ts";

export const personLimitNames = ["messages_per_minute", "turns_per_day", "usd_per_day"] as const;
export type PersonLimitName = (typeof personLimitNames)[number];

/** 0: no limit. */
export const PersonLimitsSchema = z.object({
  messagesPerMinute: z.number().int().min(0).max(1_000_000),
  turnsPerDay: z.number().int().min(0).max(1_000_000),
  usdPerDay: z.number().min(0).max(1_000_000),
});
export type PersonLimits = z.infer<typeof PersonLimitsSchema>;

/** Null: the limit of the person's role in the settings. */
export const OwnLimitsSchema = z.object({
  messagesPerMinute: PersonLimitsSchema.shape.messagesPerMinute.nullable(),
  turnsPerDay: PersonLimitsSchema.shape.turnsPerDay.nullable(),
  usdPerDay: PersonLimitsSchema.shape.usdPerDay.nullable(),
});

/** A person at an account: a contact, or `token <name>` and `oidc <name>` for callers of the API. */
export const PersonRefSchema = ContactSchema.pick({ channel: true, account: true, contactId: true });

/** A refused message. */
export const OverLimitSchema = z.object({
  limit: z.enum(personLimitNames),
  /** One sentence for the sender. */
  text: z.string(),
  /** Milliseconds after which the limit has room for one message. */
  retryAfterMs: z.number().int().positive(),
  /** The first refusal by this limit in its minute or day. Only then the sender is told where they wrote, and the audit log has an entry. */
  first: z.boolean(),
});
export type OverLimit = z.infer<typeof OverLimitSchema>;

export const LimitedPersonSchema = PersonRefSchema.extend({
  name: z.string().nullable(),
  own: OwnLimitsSchema,
  /** Today (UTC), of messages that were counted because a limit applied to them. */
  today: z.object({
    messages: z.number().int(),
    turns: z.number().int(),
    usd: z.number(),
    /** Model calls without a known price, which `usd` leaves out. */
    unpricedCalls: z.number().int(),
    /** Deliveries of messages over a limit; a repeated one counts again. */
    refused: z.number().int(),
  }),
});
export type LimitedPerson = z.infer<typeof LimitedPersonSchema>;

export const personLimitsList = storeRequest({
  subject: "store.person.limits",
  clients: ["channel-gateway"],
  doc: "List people with limits of their own, and people whose messages were counted or refused today, at most 500: those with the most refused messages first.",
  input: Empty,
  output: z.object({ people: z.array(LimitedPersonSchema) }),
});

export const personLimitsSet = storeRequest({
  subject: "store.person.limit",
  clients: ["channel-gateway"],
  doc: "Change the limits of one person. A limit that is left out stays; null: that of their role. The next message is checked against them.",
  input: PersonRefSchema.extend(OwnLimitsSchema.partial().shape),
  output: z.object({ own: OwnLimitsSchema }),
});
