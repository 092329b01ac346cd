// Sends one message, at most once: the platform does not deduplicate, so a message is sent again only if it certainly did not arrive.
import { z } from "zod";
import type { store } from "@parley/contracts";
import type { OutboundFile, OutboundPart, SendOutcome } from "../channel.ts";
import { formOf, type Answer } from "../json-api.ts";
import type { Graph } from "./graph.ts";
import { outcomeOf, windowEndedCode } from "./outcome.ts";
import { answerContext } from "./parse.ts";
import { callbackData, templateData, templateMessage, type Template } from "./template.ts";

const Sent = z.object({ messages: z.array(z.object({ id: z.string() })).min(1) });
const Uploaded = z.object({ id: z.string() });

type Target = { recipient_type: "individual" | "group"; to?: string; recipient?: string };

/** `group:<id>`, a number, or a user id of the business such as `DE.1234`. Null: not a conversation of WhatsApp. */
export function targetOf(conversation: string): Target | null {
  const [, group] = /^group:([\w.=+-]{3,200})$/.exec(conversation) ?? [];
  if (group !== undefined) return { recipient_type: "group", to: group };
  if (/^\d{5,20}$/.test(conversation)) return { recipient_type: "individual", to: conversation };
  if (/^[A-Z]{2}\.[A-Za-z0-9.]{1,128}$/.test(conversation)) {
    return { recipient_type: "individual", recipient: conversation };
  }
  return null;
}

export interface Sender {
  graph: Graph;
  template: Template | null;
  /** Called with each accepted text. */
  sent: (messageId: string, text: string) => void;
}

const windowMs = 24 * 60 * 60 * 1_000;

export async function sendPart(sender: Sender, part: OutboundPart, signal: AbortSignal): Promise<SendOutcome> {
  const target = targetOf(part.address.conversation);
  if (target === null) return { state: "dropped", reason: "not a WhatsApp conversation" };
  if (signal.aborted) return { state: "retry", afterMs: 1_000, reason: "cancelled before it was sent" };
  const context = answerContext(part.address.context);
  const isDirect = target.recipient_type === "individual";
  const hasEnded = isDirect && context !== null && Date.now() - context.sentAtMs > windowMs;
  // The person may have written since then, which only the platform knows: without a template the message is tried.
  if (hasEnded && sender.template !== null) return sendTemplate(sender, target, part, sender.template, signal);
  const { replyToId } = part.address;
  const hasTemplate = isDirect && sender.template !== null;
  const about = {
    messaging_product: "whatsapp",
    ...target,
    ...(replyToId === undefined ? {} : { context: { message_id: replyToId } }),
    biz_opaque_callback_data: callbackData(part.idempotencyKey, hasTemplate ? (part.text?.plain ?? null) : null),
  };
  const answer =
    part.text === null
      ? await sendFile(sender.graph, about, part.file, signal)
      : await sender.graph.post("messages", { ...about, ...textMessage(part.text.text, part.actions) }, Sent, signal);
  if ("state" in answer) return answer;
  if (answer.kind === "ok") {
    const id = answer.result.messages[0]?.id ?? null;
    if (id !== null && part.text !== null) sender.sent(id, part.text.plain);
    return { state: "sent", providerMessageId: id };
  }
  if (answer.kind === "refused" && answer.code === String(windowEndedCode)) {
    if (sender.template !== null) return sendTemplate(sender, target, part, sender.template, signal);
    return {
      state: "dropped",
      reason: "the person's last message is older than 24 hours, and no template is configured",
    };
  }
  return outcomeOf(answer, part.attempts);
}

/** Sends the template instead. A text that does not fit into it is not complete, so the rest of the answer is dropped with a reason. */
async function sendTemplate(
  { graph }: Sender,
  target: Target,
  part: OutboundPart,
  template: Template,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { message, isWhole } = templateMessage(template, part.text?.plain ?? `[file: ${part.file?.name ?? ""}]`);
  const about = {
    messaging_product: "whatsapp",
    ...target,
    biz_opaque_callback_data: templateData(part.idempotencyKey),
  };
  const answer = await graph.post("messages", { ...about, ...message }, Sent, signal);
  if (answer.kind !== "ok") return outcomeOf(answer, part.attempts);
  if (part.text !== null && isWhole) {
    return { state: "sent", providerMessageId: answer.result.messages[0]?.id ?? null };
  }
  return {
    state: "dropped",
    reason: `the person's last message is older than 24 hours: only the template ${template.name} was sent`,
  };
}

/** Sends the template after the platform has reported that a message came too late. Resolves when nothing more can be done. */
export async function sendLateTemplate(
  graph: Graph,
  recipient: string,
  template: Template,
  late: { key: string; text: string; isCut: boolean },
  signal: AbortSignal,
): Promise<SendOutcome> {
  const target = targetOf(recipient);
  if (target === null) return { state: "dropped", reason: "not a WhatsApp conversation" };
  const { message } = templateMessage(template, late.text, late.isCut);
  const about = { messaging_product: "whatsapp", ...target, biz_opaque_callback_data: templateData(late.key) };
  const answer = await graph.post("messages", { ...about, ...message }, Sent, signal);
  return answer.kind === "ok"
    ? { state: "sent", providerMessageId: answer.result.messages[0]?.id ?? null }
    : outcomeOf(answer, 0);
}

/** Limits of messages with buttons. */
const mostButtons = 3;
const maxButtonTitle = 20;
const maxButtonBody = 1_024;
const mostRows = 10;
const maxRowTitle = 24;

/** Reply buttons, a list where they do not fit, and otherwise the text, which says how to answer. */
export function textMessage(text: string, actions: readonly store.Action[] = []): object {
  const plain = { type: "text", text: { body: text, preview_url: false } };
  if (actions.length === 0 || new Set(actions.map(({ input }) => input.trim())).size !== actions.length) return plain;
  const fits = (maxTitle: number, most: number) =>
    actions.length <= most &&
    actions.every(({ label }) => label.length <= maxTitle) &&
    new Set(actions.map(({ label }) => label)).size === actions.length;
  if (fits(maxButtonTitle, mostButtons) && text.length <= maxButtonBody) {
    const buttons = actions.map(({ label, input }) => ({ type: "reply", reply: { id: input.trim(), title: label } }));
    return { type: "interactive", interactive: { type: "button", body: { text }, action: { buttons } } };
  }
  if (!fits(maxRowTitle, mostRows)) return plain;
  const rows = actions.map(({ label, input }) => ({ id: input.trim(), title: label }));
  return {
    type: "interactive",
    interactive: { type: "list", body: { text }, action: { button: "Choose", sections: [{ rows }] } },
  };
}

const mebibyte = 1024 * 1024;
/** How a file is shown, by its media type, and the largest one in bytes; a larger one is a document. */
const shownAs: readonly { types: RegExp; type: "image" | "audio" | "video"; maxBytes: number }[] = [
  { types: /^image\/(?:jpeg|png)$/, type: "image", maxBytes: 5 * mebibyte },
  { types: /^audio\/(?:aac|mp4|mpeg|amr|ogg)$/, type: "audio", maxBytes: 16 * mebibyte },
  { types: /^video\/(?:mp4|3gpp)$/, type: "video", maxBytes: 16 * mebibyte },
];
const documents = /^(?:application\/(?:pdf|msword|vnd\.(?:ms-|openxmlformats-).*)|text\/plain)$/;
const texts = /^(?:text\/.*|application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh)|image\/svg\+xml)$/;
const maxDocumentBytes = 100 * mebibyte;
const mediaAliases: Readonly<Record<string, string>> = {
  "audio/opus": "audio/ogg",
  "application/ogg": "audio/ogg",
  "audio/x-m4a": "audio/mp4",
};

/** The type of the message and of the upload; null: the platform does not accept such a file. */
export function uploadOf({ mediaType, content }: OutboundFile): { type: string; mediaType: string } | null {
  const uploaded = mediaAliases[mediaType] ?? mediaType;
  const shown = shownAs.find(({ types }) => types.test(uploaded));
  if (shown !== undefined && content.length <= shown.maxBytes) return { type: shown.type, mediaType: uploaded };
  if (content.length > maxDocumentBytes) return null;
  if (documents.test(uploaded)) return { type: "document", mediaType: uploaded };
  return texts.test(uploaded) ? { type: "document", mediaType: "text/plain" } : null;
}

async function sendFile(
  graph: Graph,
  about: object,
  file: OutboundFile | undefined,
  signal: AbortSignal,
): Promise<Answer<z.infer<typeof Sent>> | SendOutcome> {
  if (file === undefined) return { state: "dropped", reason: "the message has neither text nor file" };
  const upload = uploadOf(file);
  if (upload === null) {
    return { state: "dropped", reason: `WhatsApp does not accept a file of the type ${file.mediaType} and this size` };
  }
  const { type, mediaType } = upload;
  const form = formOf({ messaging_product: "whatsapp", type: mediaType }, { file: { ...file, mediaType } });
  const uploaded = await graph.post("media", form, Uploaded, signal);
  // Nobody has seen an upload, so it may be repeated.
  if (uploaded.kind === "lost") return { kind: "unreached", reason: uploaded.reason };
  if (uploaded.kind !== "ok") return uploaded;
  const media = { id: uploaded.result.id, ...(type === "document" ? { filename: file.name } : {}) };
  return graph.post("messages", { ...about, type, [type]: media }, Sent, signal);
}
