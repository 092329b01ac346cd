// People who were let in, and those who ask to be.
import { z } from "zod";
import { request } from "../contract.ts";
import { contactRoles } from "../people.ts";
import { Empty, OutgoingSchema } from "./shared.ts";

export const ContactSchema = z.object({
  channel: z.string(),
  account: z.string(),
  contactId: z.string(),
  name: z.string().nullable(),
  role: z.enum([...contactRoles, "blocked"]),
});

export const contactGet = request({
  subject: "store.contact.get",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A person who was let in by pairing; null for a stranger.",
  input: z.object({ channel: z.string(), account: z.string(), contactId: z.string() }),
  output: z.object({ contact: ContactSchema.nullable() }),
});

export const pairingRequest = request({
  subject: "store.pairing.request",
  server: "store",
  clients: ["channel-gateway"],
  doc: "A stranger asks to be let in. The gateway makes the code and shows it to them; only its hash is kept with the request. `outgoing`, the text that shows it, goes out exactly when the request is `created`, in the same commit. Refused (`full`) beyond three open codes an account; a contact with an open code gets no second one (`pending`).",
  input: z.object({
    channel: z.string(),
    account: z.string(),
    contactId: z.string(),
    name: z.string().nullable(),
    codeSha256: z.string().length(64),
    ttlMs: z.number().int().positive(),
    outgoing: OutgoingSchema.optional(),
  }),
  output: z.object({ status: z.enum(["created", "pending", "full"]) }),
});

export const pairingList = request({
  subject: "store.pairing.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Open pairing requests.",
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

export const pairingApprove = request({
  subject: "store.pairing.approve",
  server: "store",
  clients: ["channel-gateway"],
  doc: "Let the person in who was shown this code. Single use; NOT_FOUND when no open request has it.",
  input: z.object({ codeSha256: z.string().length(64), role: z.enum(contactRoles) }),
  output: z.object({ contact: ContactSchema }),
});
