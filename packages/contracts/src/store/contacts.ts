// Admitted contacts and pairing requests.
import { z } from "zod";
import { contactRoles } from "../principals.ts";
import { Empty, optionalOpId, OutgoingSchema, storeRequest } from "./shared.ts";

export const ContactSchema = z.object({
  channel: z.string(),
  account: z.string(),
  contactId: z.string(),
  name: z.string().nullable(),
  role: z.enum([...contactRoles, "blocked"]),
  /** The route of another conversation of theirs, whose session their direct messages join. Omitted or null: none. */
  route: z.string().max(600).nullish(),
});

export const contactGet = storeRequest({
  subject: "store.contact.get",
  clients: ["channel-gateway"],
  doc: "Get a contact who was admitted by pairing; null for an unknown person.",
  input: z.object({ channel: z.string(), account: z.string(), contactId: z.string() }),
  output: z.object({ contact: ContactSchema.nullable() }),
});

export type Contact = z.infer<typeof ContactSchema>;

export const contactList = storeRequest({
  subject: "store.contact.list",
  clients: ["channel-gateway"],
  doc: "List admitted and blocked contacts, newest first, at most 500.",
  input: Empty,
  output: z.object({ contacts: z.array(ContactSchema) }),
});

export const contactSet = storeRequest({
  subject: "store.contact.set",
  clients: ["channel-gateway"],
  doc: "Admit a contact with a role, change the role, or block them. An open pairing request of theirs ends.",
  input: ContactSchema.omit({ route: true }),
  output: z.object({ contact: ContactSchema }),
});

export const contactRemove = storeRequest({
  subject: "store.contact.remove",
  clients: ["channel-gateway"],
  doc: "Forget a contact: they are unknown again.",
  input: ContactSchema.pick({ channel: true, account: true, contactId: true }).extend({ opId: optionalOpId }),
  output: z.object({ removed: z.boolean() }),
});

export const pairingRequest = storeRequest({
  subject: "store.pairing.request",
  clients: ["channel-gateway"],
  doc: "Create a pairing request for an unknown person. The gateway generates the code and sends it to them; the store holds only its hash. `outgoing`, the text with the code, is enqueued in the same commit, only if the request is `created`. Refused (`full`) above three open codes per account, unless one is older than ten minutes: the oldest is then withdrawn; a contact with an open code gets no second one (`pending`).",
  input: z.object({
    channel: z.string(),
    account: z.string(),
    contactId: z.string(),
    name: z.string().nullable(),
    codeSha256: z.string().length(64),
    ttlMs: z.number().int().positive(),
    outgoing: OutgoingSchema.optional(),
    /** Sent with a created request to the conversation that an owner used last. */
    toOwner: OutgoingSchema.omit({ address: true }).optional(),
  }),
  output: z.object({ status: z.enum(["created", "pending", "full"]) }),
});

export const pairingList = storeRequest({
  subject: "store.pairing.list",
  clients: ["channel-gateway"],
  doc: "List open pairing requests.",
  input: Empty,
  output: z.object({
    pairings: z.array(
      z.object({
        channel: z.string(),
        account: z.string(),
        contactId: z.string(),
        name: z.string().nullable(),
        expiresAt: z.string(),
      }),
    ),
  }),
});

export const pairingApprove = storeRequest({
  subject: "store.pairing.approve",
  clients: ["channel-gateway"],
  doc: "Admit the person who received this code. Single use; NOT_FOUND when no open request has it.",
  input: z.object({ opId: optionalOpId, codeSha256: z.string().length(64), role: z.enum(contactRoles) }),
  output: z.object({ contact: ContactSchema }),
});

export const contactLink = storeRequest({
  subject: "store.contact.link",
  clients: ["channel-gateway"],
  doc: "Admit the person who received this code as the person of another conversation: their direct messages join its session. `toOwner` is enqueued in the same commit. Single use; NOT_FOUND when no open request has it.",
  input: z.object({
    opId: optionalOpId,
    codeSha256: z.string().length(64),
    role: z.enum(contactRoles),
    route: z.string().min(1).max(600),
    /** Sent to the conversation that an owner used last; ` <name> (<id>) on <channel>:<account>` of the linked person follows it. */
    toOwner: OutgoingSchema.omit({ address: true }).optional(),
  }),
  output: z.object({ contact: ContactSchema }),
});
