// The frames of a WebSocket that shows one conversation in the format of another protocol, in both directions.
import { textOf, type Message } from "@parley/contracts";
import type { StreamFrame } from "@parley/projections";
import { z } from "zod";
import { HttpError } from "../errors.ts";
import { parseFrame } from "./parse-frame.ts";
import { defaultConversation } from "../openai-format.ts";

/** The query that selects the format. */
export const ViewQuery = z.object({
  format: z.enum(["stream"]).optional(),
  /** With `format`: the conversation to follow and write to. */
  conversation: z.string().min(1).max(512).default(defaultConversation),
  /** With `format`: also send what happens in all other conversations; their frames have a `session`. */
  all: z.enum(["true", "false"]).optional(),
});

const StreamClientFrameSchema = z.discriminatedUnion("type", [
  z
    .object({
      type: z.literal("message"),
      id: z.string().min(1).max(256).optional(),
      text: z.string(),
      content: z.string(),
    })
    .partial({ text: true, content: true })
    .transform(({ type, id, text, content }) => ({ type, id, text: text ?? content ?? "" })),
  /** A decision about a tool call, or the answer to a question of the agent. */
  z.object({ type: z.literal("answer"), question_id: z.string().min(1).max(64), text: z.string() }),
  z.object({ type: z.literal("cancel") }),
  z.object({ type: z.literal("ping") }),
]);
export type StreamClientFrame = z.infer<typeof StreamClientFrameSchema>;

export type StreamServerFrame =
  /** `session`: the key of the session it is about; omitted: the conversation of the connection. */
  (StreamFrame & { session?: string }) | HistoryFrame | { type: "pong" } | { type: "error"; message: string };

/** What was said before the client connected, oldest first. */
export interface HistoryFrame {
  type: "history";
  messages: { role: "user" | "assistant"; content: string; at: string }[];
}

/** The texts of people and of the agent; tool calls, results and notes of the loop are left out. Pure. */
export function historyFrame(messages: readonly Message[]): HistoryFrame {
  return {
    type: "history",
    messages: messages.flatMap(({ role, parts, from, createdAt }) => {
      const content = textOf(parts);
      if (role === "tool" || content === "" || (role === "user" && from === undefined)) return [];
      return [{ role, content, at: createdAt }];
    }),
  };
}

/** Throws HttpError for an invalid frame. */
export function parseStreamFrame(data: string): StreamClientFrame {
  const frame = parseFrame(data, StreamClientFrameSchema);
  if (frame.type === "message" && frame.text.trim() === "") {
    throw new HttpError(400, "invalid_request", "text: must not be empty");
  }
  return frame;
}

/** The answers to an approval question. */
const questionOptions = ["yes", "always", "no"] as const;

/** Parses a person's decision. Throws HttpError for any other text. */
export function decisionIn(text: string): { decision: "allow" | "deny"; always: boolean } {
  const word = text.trim().toLowerCase();
  const option = questionOptions.find((each) => each === word || each.charAt(0) === word);
  if (option === undefined) {
    throw new HttpError(400, "invalid_request", `text: must be one of ${questionOptions.join(", ")}`);
  }
  return { decision: option === "no" ? "deny" : "allow", always: option === "always" };
}
