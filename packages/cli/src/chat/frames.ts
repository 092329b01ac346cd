// The frames of the gateway's WebSocket that the chat sends and reads.

import { SessionEventSchema, type QueueMode, type SessionEvent } from "@parley/contracts";
import { z } from "zod";

/** `own`: the session of a single call. `named`: the session of the named conversation. Default: the policy chooses. */
export type ThreadChoice = "own" | "named";

export type ClientFrame =
  | { type: "subscribe"; session: string; after?: number }
  | { type: "unsubscribe"; session: string }
  | {
      type: "message";
      id: string;
      conversation: string;
      text: string;
      mode?: QueueMode;
      /** The message gets a turn of its own, unless `mode` lets it join another. */
      exclusive?: boolean;
      thread?: ThreadChoice;
      /** False: nobody here can answer approval questions. */
      interactive?: false;
    }
  | { type: "cancel"; session: string; turnId?: string; queued: boolean }
  | { type: "ping" };

const ServerFrameSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("subscribed"), session: z.string().nullable(), key: z.string(), after: z.number() }),
  z.object({
    type: z.literal("accepted"),
    id: z.string(),
    messageId: z.string(),
    sessionId: z.string(),
    duplicate: z.boolean(),
  }),
  z.object({ type: z.literal("command"), id: z.string(), command: z.string(), text: z.string() }),
  z.object({
    type: z.literal("cancelled"),
    session: z.string(),
    turnId: z.string().nullable(),
    cancelledQueued: z.number(),
  }),
  z.object({ type: z.literal("error"), code: z.string(), message: z.string(), id: z.string().optional() }),
  z.object({ type: z.literal("pong") }),
]);
export type ServerFrame = z.infer<typeof ServerFrameSchema>;

const OfSession = z.object({ session: z.string() });

export type IncomingFrame =
  | { kind: "frame"; frame: ServerFrame }
  | { kind: "event"; session: string; event: SessionEvent }
  /** A frame of a newer gateway, or a malformed one; ignored. */
  | { kind: "unknown" };

/** Parses one frame. */
export function readFrame(text: string): IncomingFrame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: "unknown" };
  }
  const frame = ServerFrameSchema.safeParse(value);
  if (frame.success) return { kind: "frame", frame: frame.data };
  const of = OfSession.safeParse(value);
  const event = SessionEventSchema.safeParse(value);
  return of.success && event.success
    ? { kind: "event", session: of.data.session, event: event.data }
    : { kind: "unknown" };
}
