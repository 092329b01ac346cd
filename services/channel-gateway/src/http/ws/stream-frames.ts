// The frames of a WebSocket that shows one conversation in the format of another protocol, in both directions.
import { questionOptions, StreamFrames, TurnFrames, type StreamFrame, type TurnFrame } from "@parley/projections";
import type { ParleySettings, SessionEvent } from "@parley/contracts";
import { z } from "zod";
import { HttpError } from "../errors.ts";
import { parseFrame } from "./parse-frame.ts";
import { defaultConversation } from "../openai-format.ts";

/** The query that selects the format. */
export const ViewQuery = z.object({
  format: z.enum(["stream", "turns"]).optional(),
  /** With `format`: the conversation to follow and write to. */
  conversation: z.string().min(1).max(512).default(defaultConversation),
});
export type ViewFormat = NonNullable<z.infer<typeof ViewQuery>["format"]>;

const ViewClientFrame = z.discriminatedUnion("type", [
  z
    .object({
      type: z.literal("message"),
      id: z.string().min(1).max(256).optional(),
      text: z.string(),
      content: z.string(),
    })
    .partial({ text: true, content: true })
    .transform(({ type, id, text, content }) => ({ type, id, text: text ?? content ?? "" })),
  /** A decision about a tool call. */
  z.object({ type: z.literal("answer"), question_id: z.string().min(1).max(64), text: z.string() }),
  z.object({ type: z.literal("cancel") }),
  z.object({ type: z.literal("ping") }),
]);
export type ViewClientFrame = z.infer<typeof ViewClientFrame>;

export type ViewServerFrame = StreamFrame | TurnFrame | { type: "pong" };

/** Throws HttpError for an invalid frame. */
export function readViewFrame(data: string): ViewClientFrame {
  const frame = parseFrame(data, ViewClientFrame);
  if (frame.type === "message" && frame.text.trim() === "") {
    throw new HttpError(400, "invalid_request", "text: must not be empty");
  }
  return frame;
}

/** Converts the events of one session to frames. */
export interface View {
  event(event: SessionEvent): ViewServerFrame[];
}

export function viewOf(format: ViewFormat, settings: ParleySettings): View {
  return format === "turns" ? new TurnFrames(settings.output) : new StreamFrames();
}

const noUsage = { input_tokens: 0, output_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };

/** The frames for a command's answer, which has no turn; `id` is the client's message id. */
export function commandFrames(format: ViewFormat, id: string, text: string): ViewServerFrame[] {
  if (format === "stream") return [{ type: "response", msg_id: id, content: text }];
  return [
    { type: "text_delta", text },
    { type: "turn_complete", usage: noUsage },
  ];
}

/** Parses a person's decision. Throws HttpError for any other text. */
export function decisionIn(text: string): { allow: boolean; always: boolean } {
  const word = text.trim().toLowerCase();
  const option = questionOptions.find((each) => each === word || each.charAt(0) === word);
  if (option === undefined) {
    throw new HttpError(400, "invalid_request", `text: must be one of ${questionOptions.join(", ")}`);
  }
  return { allow: option !== "no", always: option === "always" };
}
