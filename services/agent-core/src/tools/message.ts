// `message`: sends a message to people during a turn, in this conversation or in another one.
import { exampleAddress, isThreadOf, mainSessionKey, type Outgoing, type ReplyAddress } from "@parley/contracts";
import { z } from "zod";
import { formatAddress } from "../prompt/message-header.ts";
import { parseAddress, turnAddresses } from "./reply-address.ts";
import { localTool } from "./local-tool.ts";
import { attachmentsFor, MessageAttachments } from "./message-attachments.ts";

/** Unsent texts expire after this time. */
export const textExpiryMs = 24 * 60 * 60 * 1000;

export const messageTool = localTool({
  name: "message",
  aliases: ["send_message"],
  summary: "Send a message to people.",
  description: "Send a message to people now: progress, files, or text for another conversation.",
  input: z.object({
    text: z.string().optional().describe("The text to send.").meta({ modelSchema: "name_only" }),
    content: z.string().optional().describe("Alias of `text`.").meta({ modelSchema: "hidden" }),
    to: z
      .string()
      .optional()
      .describe("channel:account:conversation, as in a message's source. Default: this conversation."),
    channel: z.string().optional().describe("With `chat_id`, an alternative to `to`.").meta({ modelSchema: "hidden" }),
    chat_id: z.string().optional().describe("The conversation in `channel`.").meta({ modelSchema: "hidden" }),
    attachments: MessageAttachments,
  }),
  examples: [{ text: "I am working on it." }, { text: "The report is done.", to: exampleAddress }],
  class: "idempotent",
  readOnly: false,
  risk: "low",
  effects: ["sends_out"],
  async run(input, context) {
    const { turn } = context;
    const text = (input.text ?? input.content ?? "").trim();
    const attachments = await attachmentsFor(input.attachments, context);
    if (typeof attachments === "string") return { status: "failed", content: `Not sent: ${attachments}` };
    if (text === "" && attachments.length === 0) {
      return { status: "failed", content: "Not sent: `text` is missing or empty." };
    }
    const to = input.to ?? chatOf(input, turn.replyTo);
    const named = to === undefined ? undefined : await parseAddress(to, context);
    if (typeof named === "string") return { status: "failed", content: `Not sent: \`to\` is ${named}.` };
    const addresses = named === undefined ? turnAddresses(turn) : [named];
    // A webhook's own thread has no reader.
    if (addresses.length === 0 && turn.root.trust === "webhook" && !isThreadOf(mainSessionKey, turn.sessionKey)) {
      return { status: "failed", content: "Not sent: nobody reads this conversation. Name a recipient with `to`." };
    }
    const outgoing = addresses.map((address): Outgoing => ({ address, text, attachments, expiresInMs: textExpiryMs }));
    const where =
      outgoing.length === 0
        ? turn.parent === null
          ? "to the clients that follow this session"
          : "to the agent that started you, as part of your report"
        : `to ${outgoing.map(({ address }) => formatAddress(address)).join(", ")}`;
    const withFiles = attachments.length === 0 ? "" : ` with ${attachments.map(({ name }) => name).join(", ")}`;
    return { status: "done", content: `message sent ${where}${withFiles}`, outgoing, sent: attachments };
  },
});

/**
 * The address given by `channel` and `chat_id`; undefined: the current conversation. Another channel without `chat_id` gives an address
 * without a conversation, which parseAddress rejects.
 */
function chatOf(
  { channel, chat_id: chat }: { channel?: string | undefined; chat_id?: string | undefined },
  here: ReplyAddress | null,
): { channel: string; conversation: string } | undefined {
  if (chat === undefined && (channel === undefined || channel === here?.channel)) return undefined;
  return { channel: channel ?? here?.channel ?? "", conversation: chat ?? "" };
}
