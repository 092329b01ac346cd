// Responses to interactions: the first within 3 s and only once, then edits of it and further ones with the interaction's token.
import { z } from "zod";
import { apiError, invalidForm, noContent, ok, unknownInteraction, type ApiResult } from "./errors.ts";
import { messageBodyOf } from "./message-body.ts";
import type { RouteCall, RouteContext } from "./routes.ts";
import type { Interaction } from "./state.ts";

/** An interaction without a response after this time has failed for the person. */
const firstResponseMs = 3_000;
const tokenMs = 15 * 60_000;
const ephemeralFlag = 1 << 6;

const Response = z.object({
  type: z.number().int(),
  data: z.looseObject({ content: z.string().max(2_000).optional(), flags: z.number().int().optional() }).optional(),
});

/** `POST /interactions/{id}/{token}/callback` */
export function respondToInteraction(
  { state }: RouteContext,
  id: string,
  token: string,
  body: Record<string, unknown>,
): ApiResult {
  const interaction = state.interactions.get(id);
  if (interaction === undefined || interaction.token !== token) return unknownInteraction;
  const given = Response.safeParse(body);
  if (!given.success) return invalidForm({ type: { code: "BASE_TYPE_REQUIRED", message: given.error.message } });
  if (interaction.acknowledged !== null) return apiError(400, 40_060, "Interaction has already been acknowledged.");
  const tookMs = Date.now() - interaction.atMs;
  if (tookMs > firstResponseMs) return unknownInteraction;
  const { type, data } = given.data;
  const allowed = interaction.messageId === null ? [4, 5, 9] : [4, 5, 6, 7, 9];
  if (!allowed.includes(type))
    return invalidForm({ type: { code: "INTERACTION_CALLBACK_TYPE_INVALID", message: "not for this interaction" } });
  if (type === 4 && (data?.content ?? "") === "") return apiError(400, 50_006, "Cannot send an empty message");
  interaction.acknowledged = type;
  interaction.acknowledgedAfterMs = tookMs;
  const ephemeral = ((data?.flags ?? 0) & ephemeralFlag) !== 0;
  if (type === 4 || type === 5) interaction.responses.push({ content: data?.content ?? "", ephemeral });
  return noContent;
}

/** `/webhooks/{application}/{token}` and its `messages/@original`. */
export function interactionMessage(
  context: RouteContext,
  call: RouteCall,
  id: string,
  rest: readonly string[],
): ApiResult | null {
  const { state } = context;
  const [token = "", messages, which] = rest;
  const interaction = [...state.interactions.values()].find((one) => one.token === token);
  if (id !== state.applicationId || interaction === undefined) return apiError(404, 10_015, "Unknown Webhook");
  if (Date.now() - interaction.atMs > tokenMs) return apiError(401, 50_027, "Invalid Webhook Token");
  if (interaction.acknowledged === null) return apiError(404, 10_008, "Unknown Message");
  const original = messages === "messages" && which === "@original";
  if (call.method === "POST" && messages === undefined) return respond(context, call, interaction, false);
  if (call.method === "PATCH" && original) return respond(context, call, interaction, true);
  if (call.method !== "DELETE" || !original) return null;
  interaction.responses.length = 0;
  return noContent;
}

function respond(context: RouteContext, call: RouteCall, interaction: Interaction, replaces: boolean): ApiResult {
  const { state } = context;
  const body = messageBodyOf(state, interaction.channelId, call.body, replaces);
  if ("status" in body) return body;
  const message = interaction.messageId === null ? undefined : state.messages.get(interaction.messageId);
  if (replaces && message !== undefined) {
    Object.assign(message, {
      ...(body.content === undefined ? {} : { content: body.content }),
      ...(body.components === undefined ? {} : { components: body.components }),
    });
    return ok({ id: message.id });
  }
  const ephemeral = (body.flags & ephemeralFlag) !== 0;
  if (!replaces || interaction.responses.length === 0)
    interaction.responses.push({ content: body.content ?? "", ephemeral });
  else
    interaction.responses[0] = { content: body.content ?? "", ephemeral: interaction.responses[0]?.ephemeral ?? false };
  return ok({ id: state.nextId() });
}
