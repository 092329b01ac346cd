// What is said over a WebSocket, in both directions. Session events come as they are, with the session's id in front.
import { mainSessionKey, queueModes } from "@parley/contracts";
import { z } from "zod";
import { threadChoices } from "../known-input.ts";
import { AttachmentRefs } from "./attachment-refs.ts";
import { readFrame } from "./read-frame.ts";
import { defaultConversation } from "./openai-format.ts";

const sessionRef = z.string().min(1).max(600).default(mainSessionKey);

export const ClientFrame = z.discriminatedUnion("type", [
  /** `after`: the last seq that was seen; without it from now on. A second one for the same session replaces the first. */
  z.strictObject({ type: z.literal("subscribe"), session: sessionRef, after: z.number().int().min(0).optional() }),
  z.strictObject({ type: z.literal("unsubscribe"), session: sessionRef }),
  /** `id` makes the message recognisable when it is sent again; with another text it is refused. */
  z.strictObject({
    type: z.literal("message"),
    id: z.string().min(1).max(256),
    conversation: z.string().min(1).max(512).default(defaultConversation),
    text: z.string().default(""),
    attachments: AttachmentRefs,
    /** What is done with it while the session is busy; left out: as the session or the settings have it. */
    mode: z.enum(queueModes).optional(),
    /** The sender waits for the answer to this message: it is a turn of its own, unless `mode` is steer or coalesce. */
    exclusive: z.boolean().default(false),
    /** The session it belongs to, where that is not the policy's choice; `own`: that of a single call, `named`: the conversation's. */
    thread: z.enum(threadChoices).optional(),
    /** False: the client at this end answers no approval questions, and calls that need one are denied at once. */
    interactive: z.boolean().default(true),
  }),
  z.strictObject({
    type: z.literal("cancel"),
    session: sessionRef,
    turnId: z.uuid().optional(),
    queued: z.boolean().default(false),
  }),
  /** What is asked for is read by `ws-control.ts`. */
  z.strictObject({
    type: z.literal("control_request"),
    request_id: z.string().min(1).max(256),
    session: sessionRef,
    request: z.record(z.string(), z.unknown()),
  }),
  z.strictObject({ type: z.literal("ping") }),
]);
export type ClientFrame = z.infer<typeof ClientFrame>;

/** Everything a client may hear besides session events. */
export type ServerFrame =
  /** `session` is null while the session does not exist yet; a second frame follows when it does. */
  | { type: "subscribed"; session: string | null; key: string; after: number }
  | { type: "accepted"; id: string; messageId: string; sessionId: string; duplicate: boolean }
  /** The message was a command and has been carried out. */
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

/** Throws HttpError that says what is wrong with the frame. */
export function readClientFrame(data: string): ClientFrame {
  return readFrame(data, ClientFrame);
}
