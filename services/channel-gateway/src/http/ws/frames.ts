// The WebSocket frames in both directions. A frame with a session event is the event with the session's id as its first field.
import { mainSessionKey, queueModes } from "@parley/contracts";
import { z } from "zod";
import { threadChoices } from "../../ingress/authorized-input.ts";
import { AttachmentRefs } from "../attachment-refs.ts";
import { parseFrame } from "./parse-frame.ts";
import { defaultConversation } from "../openai-format.ts";

const sessionRef = z.string().min(1).max(600).default(mainSessionKey);

export const ClientFrame = z.discriminatedUnion("type", [
  /** `after`: the seq of the last event received; omitted: only new events. Another subscription of the same session replaces this one. */
  z.strictObject({ type: z.literal("subscribe"), session: sessionRef, after: z.number().int().min(0).optional() }),
  z.strictObject({ type: z.literal("unsubscribe"), session: sessionRef }),
  /** `id` is the idempotency key of the message: a second message with the same id and a different text is refused. */
  z.strictObject({
    type: z.literal("message"),
    id: z.string().min(1).max(256),
    conversation: z.string().min(1).max(512).default(defaultConversation),
    text: z.string().default(""),
    attachments: AttachmentRefs,
    /** Instructions of the client program, placed before the text. */
    instructions: z.string().min(1).max(100_000).optional(),
    /** The profile that answers; each conversation has a separate session per profile. Omitted: the main agent. */
    profile: z.string().optional(),
    /** The queue mode while the session is busy; omitted: the mode of the session or the settings. */
    mode: z.enum(queueModes).optional(),
    /** The sender waits for the answer, so the message gets its own turn unless `mode` is steer or coalesce. */
    exclusive: z.boolean().default(false),
    /** Which session the message belongs to, instead of the session policy's choice: see `threadChoices`. */
    thread: z.enum(threadChoices).optional(),
    /** False: the client cannot answer approval questions, so tool calls that need approval are denied immediately. */
    interactive: z.boolean().default(true),
    /** The client approves or denies every tool call of the turn. The reason in the question tells whether the call needs approval anyway. */
    review: z.boolean().default(false),
  }),
  z.strictObject({
    type: z.literal("cancel"),
    session: sessionRef,
    turnId: z.uuid().optional(),
    /** Also cancels queued input. */
    queued: z.boolean().default(false),
  }),
  /** The fields of `request` are checked in `control.ts`. */
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
  /**
   * `key`: what the client subscribed to, the id or key of a session. `session`: the id of the session that it refers to; null while the
   * session does not exist. A further frame follows when it is created, and when the key refers to another session.
   */
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
