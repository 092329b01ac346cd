// Responses to buttons and slash commands. Discord shows a failure after 3 s, so an interaction is acknowledged when it arrives; its
// outcome follows when the input is stored. All of it is best effort: nothing depends on it.
import { z } from "zod";
import type { ActionResult, ChannelHost } from "../channel.ts";
import type { Call } from "./api.ts";
import type { Interaction } from "./schema.ts";

const button = 3;
const ephemeral = 1 << 6;
const deferred = { message: 5, update: 6 } as const;
const acknowledgeWithinMs = 2_500;
const answerWithinMs = 5_000;
const maxContent = 2_000;
const maxDescription = 100;

/** Acknowledges an interaction: a button keeps its message, a command shows that it was received, to its user only. */
export async function acknowledge(call: Call, { id, token, type }: Interaction): Promise<void> {
  const body = type === button ? { type: deferred.update } : { type: deferred.message, data: { flags: ephemeral } };
  const path = `/interactions/${id}/${token}/callback`;
  await call({ method: "POST", path, body }, z.unknown(), AbortSignal.timeout(acknowledgeWithinMs));
}

/** Shows in the message who decided, or to the person who pressed why nothing happened. */
export async function showAction(
  call: Call,
  interaction: Interaction,
  by: string,
  { text, done }: ActionResult,
): Promise<void> {
  if (!done) return respond(call, interaction, "POST", "", { content: text.slice(0, maxContent), flags: ephemeral });
  const decided = `${interaction.message?.content ?? ""}\n\n${by}: ${text}`.trim();
  const content = decided.length > maxContent ? {} : { content: decided, allowed_mentions: { parse: [] } };
  return respond(call, interaction, "PATCH", "/messages/@original", { ...content, components: [] });
}

/** The answer to a slash command is an ordinary message; this only completes the acknowledgement. */
export async function showCommand(
  call: Call,
  interaction: Interaction,
  text: string,
  isIgnored: boolean,
): Promise<void> {
  const content = isIgnored
    ? "You may not use this here."
    : `Received: \`${text.replaceAll("`", "'").slice(0, 1_900)}\``;
  return respond(call, interaction, "PATCH", "/messages/@original", { content, allowed_mentions: { parse: [] } });
}

/** Registers the commands of the agent as slash commands of the bot. Returns the reason of a failure. */
export async function registerCommands(
  call: Call,
  commands: ChannelHost["commands"],
  signal: AbortSignal,
): Promise<string | null> {
  const application = await call({ method: "GET", path: "/applications/@me" }, z.object({ id: z.string() }), signal);
  if (application.kind !== "ok") return application.reason;
  const body = commands.map(({ name, summary }) => ({
    name: name.slice(1),
    description: summary.slice(0, maxDescription),
    type: 1,
    // In servers and in direct conversations with the bot.
    contexts: [0, 1],
    integration_types: [0],
    options: [{ type: 3, name: "text", description: "arguments of the command", required: false }],
  }));
  const path = `/applications/${application.result.id}/commands`;
  const answer = await call({ method: "PUT", path, body }, z.unknown(), signal);
  return answer.kind === "ok" ? null : answer.reason;
}

async function respond(
  call: Call,
  { application_id: id, token }: Interaction,
  method: "POST" | "PATCH",
  more: string,
  body: object,
) {
  const request = { method, path: `/webhooks/${id}/${token}${more}`, body };
  await call(request, z.unknown(), AbortSignal.timeout(answerWithinMs));
}
