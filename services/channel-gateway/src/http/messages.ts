// POST /api/messages: stores a message or executes a command.
import { queueModes } from "@parley/contracts";
import { z } from "zod";
import { routeOfSession } from "../ingress/session-route.ts";
import { parseInput } from "../operations/parse-input.ts";
import { inputFor, ownerInput } from "./owner-input.ts";
import { AttachmentRefs, attachmentsOf } from "./attachment-refs.ts";
import { accessOf } from "./api-access.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { defaultConversation } from "./openai-format.ts";

const MessageBody = z
  .strictObject({
    /** Optional with attachments. */
    text: z.string().default(""),
    /** Files stored by POST /api/attachments. */
    attachments: AttachmentRefs,
    /** Names the conversation; with the singleton policy all conversations of the owner share one session. */
    conversation: z.string().min(1).max(512).default(defaultConversation),
    /** Id or key of the session that the message is for; omitted: the conversation and the session policy decide. */
    session: z.string().min(1).max(600).optional(),
    /** The profile that answers, in a session of its own per conversation; omitted: the agent itself. */
    profile: z.string().optional(),
    /** The queue mode while the session is busy; omitted: the mode of the session or the settings. */
    mode: z.enum(queueModes).optional(),
    /** The caller waits for the answer, so the message gets its own turn unless `mode` is steer or coalesce. */
    exclusive: z.boolean().default(false),
    /** False: the client cannot answer approval questions, so tool calls that need approval are denied immediately. */
    interactive: z.boolean().default(true),
  })
  .refine(({ text, attachments = [] }) => text !== "" || attachments.length > 0, {
    path: ["text"],
    error: "must not be empty",
  });
const StoredResult = z.object({ messageId: z.string(), sessionId: z.string(), duplicate: z.boolean() });
const CommandResult = z.object({ command: z.string(), text: z.string() });

export function messageRoutes(endpoints: Endpoints, deps: HttpDeps): void {
  endpoints.add(
    {
      method: "POST",
      url: "/api/messages",
      scope: "talk",
      summary: "Send a message; read the answer from the events, the turn or the session",
      description:
        "A command (/help lists them) is executed immediately and answered with status 200; it never reaches the model. While the session is busy, `mode` decides how the message queues. When it joins a running turn, the text of that turn answers all joined messages. With `exclusive` the message waits for its own turn.",
      headers: { "Idempotency-Key": "A repeated key is the same message; with a different text it is refused." },
      body: MessageBody,
      answers: {
        202: { description: "Stored durably", schema: StoredResult },
        200: { description: "The text was a command and has been executed", schema: CommandResult },
        409: {
          description:
            "idempotency_key_reused: the key was used with a different text; busy: the mode is reject and a turn is running, try again after Retry-After",
        },
      },
    },
    async ({ body, request, reply }) => {
      const parsed = parseInput(body.text);
      const route = body.session === undefined ? undefined : await routeOfSession(deps, body.session);
      const { conversation, profile } = body;
      const owned = {
        ...ownerInput(accessOf(request), conversation, body.text, request.headers["idempotency-key"]),
        route,
      };
      const input = inputFor(deps.settings, owned, profile);
      if (parsed.kind === "command") {
        deps.events.inbound(input.channel, "command");
        const text = await deps.inbound.runCommand(parsed.command, deps.inbound.speakerOf(input));
        return { command: parsed.command.name, text };
      }
      const attachments = await attachmentsOf(deps.bus, body.attachments);
      const mode = parsed.mode ?? body.mode;
      const approvals = body.interactive ? undefined : ("none" as const);
      const kept = await deps.inbound.store({
        ...input,
        text: parsed.text,
        mode,
        attachments,
        exclusive: body.exclusive,
        approvals,
      });
      reply.code(202);
      return { messageId: kept.inboxId, sessionId: kept.sessionId, duplicate: kept.duplicate };
    },
  );
}
