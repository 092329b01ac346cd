// Messages and turns of the native API: keep one, ask what became of it.
import { queueModes, store } from "@parley/contracts";
import { z } from "zod";
import { readSpoken } from "../commands/spoken.ts";
import { apiInput } from "./api-input.ts";
import { AttachmentRefs, attachmentsOf } from "./attachment-refs.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { defaultConversation } from "./openai-format.ts";

const MessageBody = z
  .strictObject({
    /** May be left out beside attachments. */
    text: z.string().default(""),
    /** Files that POST /api/attachments has taken. */
    attachments: AttachmentRefs,
    /** Names the chat; in the singleton policy all chats of the owner are one thread. */
    conversation: z.string().min(1).max(512).default(defaultConversation),
    /** What is done with it while the session is busy; left out: as the session or the settings have it. */
    mode: z.enum(queueModes).optional(),
    /** The caller waits for the answer to this message: it is a turn of its own, unless `mode` is steer or coalesce. */
    exclusive: z.boolean().default(false),
    /** False: the client at this end answers no approval questions, and calls that need one are denied at once. */
    interactive: z.boolean().default(true),
  })
  .refine(({ text, attachments = [] }) => text !== "" || attachments.length > 0, {
    path: ["text"],
    error: "must not be empty",
  });
const Kept = z.object({ messageId: z.string(), sessionId: z.string(), duplicate: z.boolean() });
const CarriedOut = z.object({ command: z.string(), text: z.string() });

/** Ids in paths are the store's UUIDs; anything else cannot exist. */
const IdParams = z.object({ id: z.uuid() });

export function messageRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "POST",
      url: "/api/messages",
      summary: "Say something; the answer is read from the events, the turn or the session",
      description:
        "A text that is a command (/help lists them) is carried out at once and answered with status 200; it never reaches the model. While the session is busy the message is handled as `mode` says; where it joins a running turn, the turn's text is the answer to all that joined. With `exclusive` it waits and is a turn of its own.",
      headers: { "Idempotency-Key": "The same key again is the same message; with another text it is refused." },
      body: MessageBody,
      answers: {
        202: { description: "Kept durably", schema: Kept },
        200: { description: "It was a command, and has been carried out", schema: CarriedOut },
        409: {
          description:
            "idempotency_key_reused: the key was given to another text; busy: the mode is reject and a turn is running, try again after Retry-After",
        },
      },
    },
    async ({ body, request, reply }) => {
      const spoken = readSpoken(body.text);
      const input = apiInput(body.conversation, body.text, request.headers["idempotency-key"]);
      if (spoken.kind === "command") {
        deps.events.inbound(input.channel, "command");
        const text = await deps.inbound.carryOut(spoken.command, deps.inbound.speakerOf(input));
        return { command: spoken.command.name, text };
      }
      const attachments = await attachmentsOf(deps.bus, body.attachments);
      const mode = spoken.mode ?? body.mode;
      const approvals = body.interactive ? undefined : ("none" as const);
      const kept = await deps.inbound.keep({
        ...input,
        text: spoken.text,
        mode,
        attachments,
        exclusive: body.exclusive,
        approvals,
      });
      reply.code(202);
      return { messageId: kept.inboxId, sessionId: kept.sessionId, duplicate: kept.duplicate };
    },
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/messages/:id",
      summary: "What became of a message",
      params: IdParams,
      answers: {
        200: {
          description: "Its state and its turn, once one has begun",
          schema: store.inboxGet.output.extend({ messageId: z.string() }),
        },
      },
    },
    async ({ params }) => ({
      messageId: params.id,
      ...(await deps.bus.request(store.inboxGet, { inboxId: params.id })),
    }),
  );

  endpoints.add(
    {
      method: "GET",
      url: "/api/turns/:id",
      summary: "One turn and its tool calls",
      params: IdParams,
      answers: { 200: { description: "The turn", schema: store.turnGet.output } },
    },
    ({ params }) => deps.bus.request(store.turnGet, { turnId: params.id }),
  );
}
