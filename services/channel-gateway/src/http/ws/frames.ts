// The WebSocket frames in both directions. Session events are sent unchanged, preceded by the session's id.
import { mainSessionKey, queueModes } from "@parley/contracts";
import { z } from "zod";
import { threadChoices } from "../../ingress/authorized-input.ts";
import { AttachmentRefs } from "../attachment-refs.ts";
import { parseFrame } from "./parse-frame.ts";
import { defaultConversation } from "../openai-format.ts";

const sessionRef = z.string().min(1).max(600).default(mainSessionKey);

export const ClientFrame = z.discriminatedUnion("type", [
  /** `after`: the last received seq; omitted: from now on. A second subscription of the same session replaces the first. */
  z.strictObject({ type: z.literal("subscribe"), session: sessionRef, after: z.number().int().min(0).optional() }),
  z.strictObject({ type: z.literal("unsubscribe"), session: sessionRef }),
  /** `id` is the idempotency key of the message; with a different text it is refused. */
  z.strictObject({
    type: z.literal("message"),
    id: z.string().min(1).max(256),
    conversation: z.string().min(1).max(512).default(defaultConversation),
    text: z.string().default(""),
    attachments: AttachmentRefs,
    /** Instructions of the calling program; the agent reads them before the text. */
    instructions: z.string().min(1).max(100_000).optional(),
    /** The profile that answers, in a session of its own per conversation; omitted: the agent itself. */
    profile: z.string().optional(),
    /** The queue mode while the session is busy; omitted: the mode of the session or the settings. */
    mode: z.enum(queueModes).optional(),
    /** The sender waits for the answer, so the message gets its own turn unless `mode` is steer or coalesce. */
    exclusive: z.boolean().default(false),
    /** Overrides the session policy. `own`, `separate`: the session of a single call; `named`: the session of the conversation. */
    thread: z.enum(threadChoices).optional(),
    /** False: the client cannot answer approval questions, so tool calls that need approval are denied immediately. */
    interactive: z.boolean().default(true),
    /** The client decides about every tool call of the turn, also those that need no approval: the reason says which. */
    review: z.boolean().default(false),
  }),
  z.strictObject({
    type: z.literal("cancel"),
    session: sessionRef,
    turnId: z.uuid().optional(),
    queued: z.boolean().default(false),
  }),
  /** `control.ts` parses `request`. */
  z.strictObject({
    type: z.literal("control_request"),
    request_id: z.string().min(1).max(256),
    session: sessionRef,
    request: z.record(z.string(), z.unknown()),
  }),
  z.strictObject({ type: z.literal("ping") }),
]);
export type ClientFrame = z.infer<typeof ClientFrame>;

/** All frames to a client except session events. */
export type ServerFrame =
  /** `session` is null while the session does not exist; a second frame follows when it is created. */
  | { type: "subscribed"; session: string | null; key: string; after: number }
  | { type: "accepted"; id: string; messageId: string; sessionId: string; duplicate: boolean }
  /** The message was a command and has been executed. */
  | { type: "command"; id: string; command: string; text: string }
  | { type: "cancelled"; session: string; turnId: string | null; cancelledQueued: number }
  | {
      type: "control_response";
      response:
        | { subtype: "success"; request_id: string; response: object }
        | { subtype: "error"; request_id: string; code: string; error: string };
    }
  | { type: "error"; code: string; message: string; id?: string }
  | { type: "pong" };

/** Throws HttpError for an invalid frame. */
export function readClientFrame(data: string): ClientFrame {
  return parseFrame(data, ClientFrame);
}
