// Files of inbound messages, which a gateway fetches from the platform after the message is stored.
import { z } from "zod";
import { BlobPart, PendingFilePart, TextPart } from "../messages.ts";
import { Empty, storeRequest } from "./shared.ts";

/** The fence of the replica that stored the message; each later claim has a higher one. */
export const firstFileFence = 1;

/** A message whose files are missing, claimed by one replica. */
export const PendingFilesSchema = z.object({
  inboxId: z.string(),
  channel: z.string(),
  account: z.string(),
  fence: z.number().int(),
  files: z.array(PendingFilePart).min(1),
  /** After this time notes replace the files. */
  dueInMs: z.number().int(),
});
export type PendingFiles = z.infer<typeof PendingFilesSchema>;

export const fileClaim = storeRequest({
  subject: "store.file.claim",
  clients: ["channel-gateway"],
  // What a second attempt claims would wait until its claim expires.
  idempotent: false,
  doc: "Claim messages whose files are missing and whose claim has expired, oldest first.",
  input: z.object({
    /** `channel:account` of the accounts whose files the caller can fetch. */
    accounts: z.array(z.string()).max(1_000),
    ttlMs: z.number().int().positive(),
    limit: z.number().int().min(1).max(20),
  }),
  output: z.object({ messages: z.array(PendingFilesSchema) }),
});

const FileClaim = z.object({ inboxId: z.string(), fence: z.number().int() });

export const fileRenew = storeRequest({
  subject: "store.file.renew",
  clients: ["channel-gateway"],
  doc: "Extend the claim of a message's files by `ttlMs`; 0 releases it. FENCED when another replica claimed them or nothing is missing.",
  input: FileClaim.extend({ ttlMs: z.number().int().nonnegative() }),
  output: Empty,
});

export const fileComplete = storeRequest({
  subject: "store.file.complete",
  clients: ["channel-gateway"],
  doc: "Replace the missing files of a message, in their order, by their content or by notes; turns may then start with it. Not completed when the claim has ended or the message is no longer queued.",
  input: FileClaim.extend({ parts: z.array(z.discriminatedUnion("type", [TextPart, BlobPart])).min(1) }),
  output: z.object({ completed: z.boolean() }),
});
