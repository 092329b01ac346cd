// POST /<version>/<phone number>/messages: the limits and rules of the platform. Sources: the reference of the Cloud API.
import { z } from "zod";
import { graphError, titleOf, type GraphResult } from "./errors.ts";
import { shownText } from "./markup.ts";
import type { WhatsAppMessage, WhatsAppState } from "./state.ts";
import { deliverStatus } from "./webhook.ts";

const Text = z.strictObject({ body: z.string().min(1).max(4_096), preview_url: z.boolean().optional() });
const Captioned = z.strictObject({
  id: z.string().optional(),
  link: z.url().optional(),
  caption: z.string().max(1_024).optional(),
});
const textUpTo = (max: number) => z.string().min(1).max(max);
const Reply = z.strictObject({
  type: z.literal("reply"),
  reply: z.strictObject({ id: textUpTo(256), title: textUpTo(20) }),
});
const Row = z.strictObject({ id: textUpTo(200), title: textUpTo(24), description: z.string().max(72).optional() });
const Section = z.strictObject({ title: textUpTo(24).optional(), rows: z.array(Row).min(1).max(10) });
const Interactive = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("button"),
    body: z.strictObject({ text: textUpTo(1_024) }),
    action: z.strictObject({ buttons: z.array(Reply).min(1).max(3) }),
  }),
  z.strictObject({
    type: z.literal("list"),
    body: z.strictObject({ text: textUpTo(4_096) }),
    action: z.strictObject({ button: textUpTo(20), sections: z.array(Section).length(1) }),
  }),
]);
const Parameter = z.object({ type: z.literal("text"), text: z.string().min(1).max(1_024) });
const Template = z.object({
  name: z.string().regex(/^[a-z0-9_]{1,512}$/),
  language: z.object({ code: z.string().min(2) }),
  components: z.array(z.object({ type: z.string(), parameters: z.array(Parameter) })).default([]),
});

const Send = z.object({
  messaging_product: z.literal("whatsapp"),
  recipient_type: z.enum(["individual", "group"]).default("individual"),
  to: z.string().optional(),
  recipient: z.string().optional(),
  type: z.string().default("text"),
  context: z.object({ message_id: z.string().startsWith("wamid.") }).optional(),
  biz_opaque_callback_data: z.string().max(512).optional(),
  text: Text.optional(),
  image: Captioned.optional(),
  video: Captioned.optional(),
  audio: Captioned.omit({ caption: true }).extend({ voice: z.boolean().optional() }).optional(),
  document: Captioned.extend({ filename: z.string().max(240).optional() }).optional(),
  sticker: Captioned.omit({ caption: true }).optional(),
  interactive: Interactive.optional(),
  template: Template.optional(),
  reaction: z.strictObject({ message_id: z.string().startsWith("wamid."), emoji: z.string().max(16) }).optional(),
});
type Send = z.infer<typeof Send>;

const Read = z.object({
  messaging_product: z.literal("whatsapp"),
  status: z.literal("read"),
  message_id: z.string(),
  typing_indicator: z.object({ type: z.literal("text") }).optional(),
});

/** Whether a body marks a message as read, with or without the typing indicator. */
export function isRead(body: unknown): boolean {
  return typeof body === "object" && body !== null && "status" in body;
}

export function markRead(body: unknown, state: WhatsAppState): GraphResult {
  const given = Read.safeParse(body);
  if (!given.success) return invalid(given.error);
  const { message_id: id, typing_indicator: typing } = given.data;
  if (!state.received.has(id)) return graphError(131009, "message_id is not a message that was received");
  state.read.add(id);
  if (typing !== undefined) state.typing.push(id);
  return { status: 200, body: { success: true } };
}

export function sendMessage(body: unknown, state: WhatsAppState): GraphResult {
  const given = Send.safeParse(body);
  if (!given.success) return invalid(given.error);
  const message = given.data;
  const { type } = message;
  const to = message.recipient_type === "group" ? message.to : (message.recipient ?? message.to?.replace(/^\+/, ""));
  if (to === undefined) return graphError(131008, "Parameter 'to' is required");
  const isPerson = /^\d{5,20}$/.test(to) || /^[A-Z]{2}\.[A-Za-z0-9.]{1,128}$/.test(to);
  if (message.recipient_type === "individual" && !isPerson) return graphError(131009, "'to' is not a valid number");
  const content = contentOf(message, state);
  if ("status" in content) return content;
  const id = state.id();
  const sent: WhatsAppMessage = {
    id,
    to,
    toGroup: message.recipient_type === "group",
    type,
    contextId: message.context?.message_id ?? null,
    callbackData: message.biz_opaque_callback_data ?? null,
    buttons: [],
    file: null,
    template: null,
    reaction: null,
    text: "",
    ...content,
    shown: shownText(content.text ?? ""),
  };
  // The 24-hour window opens with the person's first message.
  const isOpen = sent.toGroup || type === "template" || (state.windows.get(to) ?? 0) > Date.now();
  if (!isOpen && state.refusesLate === "response") {
    return graphError(131047, "More than 24 hours have passed since the customer last replied to this number");
  }
  if (isOpen) state.sent.push(sent);
  else {
    const errors = [{ code: 131047, title: titleOf(131047), message: titleOf(131047) }];
    deliverStatus(state, { id, to, status: "failed", errors, callbackData: sent.callbackData });
  }
  state.changed();
  return {
    status: 200,
    body: { messaging_product: "whatsapp", contacts: [{ input: to, wa_id: to }], messages: [{ id }] },
  };
}

function contentOf(message: Send, state: WhatsAppState): Partial<WhatsAppMessage> | GraphResult {
  const { type, text, interactive, template, reaction } = message;
  if (type === "text" && text !== undefined) return { text: text.body };
  if (type === "reaction" && reaction !== undefined) {
    return { reaction: { messageId: reaction.message_id, emoji: reaction.emoji } };
  }
  if (type === "interactive" && interactive !== undefined) return interactiveContent(interactive);
  if (type === "template" && template !== undefined) return templateContent(template, state);
  if (!isMedia(type)) return graphError(type in Send.shape ? 131008 : 131051, `type ${type}`);
  const media = message[type];
  if (media === undefined) return graphError(131008, `Parameter '${type}' is required`);
  const stored = state.media.get(media.id ?? "");
  if (stored === undefined) return graphError(131009, "The media id does not exist");
  if (type !== "document" && !stored.mediaType.startsWith(`${type}/`)) {
    return graphError(131053, `${stored.mediaType} cannot be sent as ${type}`);
  }
  const name = "filename" in media ? (media.filename ?? null) : stored.name;
  return {
    text: "caption" in media ? (media.caption ?? "") : "",
    file: { name, mediaType: stored.mediaType, content: stored.content },
  };
}

const mediaTypes = ["image", "video", "audio", "document", "sticker"] as const;

function isMedia(type: string): type is (typeof mediaTypes)[number] {
  return mediaTypes.some((one) => one === type);
}

function interactiveContent({ body, action }: z.infer<typeof Interactive>): Partial<WhatsAppMessage> | GraphResult {
  const buttons =
    "buttons" in action
      ? action.buttons.map(({ reply }) => reply)
      : action.sections.flatMap(({ rows }) => rows.map(({ id, title: label }) => ({ id, title: label })));
  const isUnique = (values: string[]) => new Set(values).size === values.length;
  if (!isUnique(buttons.map(({ id }) => id)) || !isUnique(buttons.map((button) => button.title))) {
    return graphError(131009, "Buttons must have unique ids and titles");
  }
  if (buttons.some(({ id }) => id !== id.trim())) return graphError(131009, "A button id begins or ends with a space");
  return { text: body.text, buttons };
}

function templateContent(
  { name, language, components }: z.infer<typeof Template>,
  state: WhatsAppState,
): Partial<WhatsAppMessage> | GraphResult {
  const expected = state.templates.get(`${name}/${language.code}`);
  if (expected === undefined) return graphError(132001);
  const parameters = components.flatMap((component) => component.parameters.map(({ text }) => text));
  if (parameters.length !== expected) return graphError(132000);
  // A parameter may not contain line breaks, tabs or more than four spaces in a row.
  if (parameters.some((text) => /[\n\t]| {5}/.test(text))) return graphError(132018);
  return { template: { name, language: language.code, parameters } };
}

function invalid(error: z.ZodError): GraphResult {
  const [issue] = error.issues;
  return graphError(100, `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}
