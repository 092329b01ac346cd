// Previews: a message that shows an answer while it is written, and that the answer replaces.
import { z } from "zod";
import { ReplyAddressSchema } from "../inbound.ts";
import { Empty, LeaseRef, storeRequest } from "./shared.ts";
import { OwnerSchema, SendRatesSchema } from "./outbox.ts";

/** A preview: one per turn and conversation. */
const Preview = z.object({
  turnId: z.uuid(),
  channel: z.string(),
  account: z.string(),
  conversation: z.string(),
  owner: OwnerSchema,
});
const Paced = Preview.extend({
  rates: SendRatesSchema.optional(),
  /** How long this replica alone may edit the message; the answer waits for no longer than that after a crash. */
  claimMs: z.number().int().positive(),
});

export const previewOpen = storeRequest({
  subject: "store.preview.open",
  clients: ["channel-gateway"],
  doc: "Record that the preview of a turn's answer is about to be sent to a conversation, whose other texts wait meanwhile. Refused permanently (`never`) when the turn has ended or has a preview there, when the account is paused or when the lease is lost; refused for now (`later`) while other texts of the conversation wait, or while the rates leave less than half of their burst for answers.",
  input: Paced.extend({
    opId: z.uuid(),
    address: ReplyAddressSchema,
    /** For channels whose sends need an owned connection. */
    lease: LeaseRef.optional(),
  }),
  output: z.object({ verdict: z.enum(["open", "later", "never"]) }),
});

export const previewEdit = storeRequest({
  subject: "store.preview.edit",
  clients: ["channel-gateway"],
  doc: "Ask to edit a preview, within half of the rates' bursts. `never`: it belongs to another process, or the answer has replaced it.",
  input: Paced,
  output: z.object({ verdict: z.enum(["edit", "later", "never"]) }),
});

export const previewSettle = storeRequest({
  subject: "store.preview.settle",
  clients: ["channel-gateway"],
  doc: "Settle the send or an edit of a preview. After `sent` the answer replaces the message; if the answer was sent before the id arrived, the message is deleted. `failed` means that nothing was sent. After `unknown` the answer is a message of its own. A pause that the platform demanded holds for all replicas. `released`: the sender edits no longer, so any replica may send the answer.",
  input: Preview.extend({
    opId: z.uuid(),
    /** For the deletion of a message whose id arrives after the answer was sent. */
    address: ReplyAddressSchema,
    outcome: z.discriminatedUnion("state", [
      z.object({ state: z.literal("sent"), messageId: z.string() }),
      z.object({
        state: z.literal("failed"),
        pause: z
          .object({ afterMs: z.number().int().nonnegative(), scope: z.enum(["conversation", "account"]) })
          .optional(),
      }),
      z.object({ state: z.literal("unknown") }),
      z.object({ state: z.literal("released") }),
    ]),
  }),
  output: Empty,
});
