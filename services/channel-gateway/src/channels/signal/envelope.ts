// The part of signal-cli's envelopes that Parley reads. Unknown fields are ignored; an envelope of another form is skipped.
import { z } from "zod";

/** Unix milliseconds within the range of `Date`. */
const Timestamp = z.number().int().min(0).max(8.64e15);
const Address = z.string().max(200).nullish();

const Mention = z.object({
  name: z.string().nullish(),
  number: Address,
  uuid: Address,
  start: z.number().int().nonnegative(),
  length: z.number().int().nonnegative(),
});
export type Mention = z.infer<typeof Mention>;

const Attachment = z.object({
  id: z.string().min(1).max(500).nullish(),
  contentType: z.string().nullish(),
  filename: z.string().nullish(),
  size: z.number().int().nonnegative().nullish(),
});
export type Attachment = z.infer<typeof Attachment>;

const DataMessage = z.object({
  timestamp: Timestamp,
  message: z.string().nullish(),
  viewOnce: z.boolean().nullish(),
  mentions: z.array(Mention).nullish(),
  attachments: z.array(Attachment).nullish(),
  quote: z
    .object({
      authorNumber: Address,
      authorUuid: Address,
      text: z.string().nullish(),
      mentions: z.array(Mention).nullish(),
    })
    .nullish(),
  reaction: z
    .object({
      emoji: z.string(),
      targetAuthorNumber: Address,
      targetAuthorUuid: Address,
      targetSentTimestamp: Timestamp,
      isRemove: z.boolean().nullish(),
    })
    .nullish(),
  remoteDelete: z.object({ timestamp: Timestamp }).nullish(),
  sticker: z.object({}).nullish(),
  contacts: z.array(z.unknown()).nullish(),
  storyContext: z.object({}).nullish(),
  groupInfo: z.object({ groupId: z.string().min(1).max(200) }).nullish(),
});
export type DataMessage = z.infer<typeof DataMessage>;

export const ReceivedEvent = z.object({
  /** The number that received it. */
  account: z.string().nullish(),
  envelope: z.object({
    sourceNumber: Address,
    sourceUuid: Address,
    sourceName: z.string().nullish(),
    timestamp: Timestamp,
    dataMessage: DataMessage.nullish(),
    editMessage: z.object({ targetSentTimestamp: Timestamp, dataMessage: DataMessage }).nullish(),
    syncMessage: z.unknown().optional(),
  }),
});
export type ReceivedEvent = z.infer<typeof ReceivedEvent>;
