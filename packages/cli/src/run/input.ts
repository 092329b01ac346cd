// Parses the input of `parley run --input-format stream-json`: one JSON object per line. Pure.

import { z } from "zod";

import type { PermissionAnswer } from "./permission.ts";

const TextBlock = z.object({ type: z.literal("text"), text: z.string() });

/** It becomes part of a path. */
const requestId = z.string().regex(/^[A-Za-z0-9]{1,32}$/);

const InputLine = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("user"),
    message: z.object({ role: z.literal("user"), content: z.union([z.string(), z.array(TextBlock)]) }),
  }),
  z.object({
    type: z.literal("control_request"),
    request_id: z.string(),
    request: z.looseObject({ subtype: z.string() }),
  }),
  /** The answer to an approval question. */
  z.object({
    type: z.literal("control_response"),
    response: z.union([
      z.strictObject({
        subtype: z.literal("success").optional(),
        request_id: requestId,
        // Validated together with its question.
        response: z.unknown(),
      }),
      z.strictObject({ subtype: z.literal("error"), request_id: requestId, error: z.string() }),
    ]),
  }),
]);

export type Input =
  | { kind: "user"; text: string }
  | { kind: "control"; id: string; request: ControlRequest }
  | { kind: "answer"; answer: PermissionAnswer }
  /** Invalid input; `id` if it was a request. */
  | { kind: "wrong"; problem: string };

export interface ControlRequest {
  readonly subtype: string;
  readonly [field: string]: unknown;
}

export function readInput(line: string): Input {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { kind: "wrong", problem: "a line of standard input is not valid JSON" };
  }
  const parsed = InputLine.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return {
      kind: "wrong",
      problem: `standard input: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "does not match"}`,
    };
  }
  const { data } = parsed;
  switch (data.type) {
    case "user": {
      const { content } = data.message;
      const text = typeof content === "string" ? content : content.map((block) => block.text).join("\n\n");
      return text.trim() === "" ? { kind: "wrong", problem: "the message contains no text" } : { kind: "user", text };
    }
    case "control_request":
      return { kind: "control", id: data.request_id, request: data.request };
    case "control_response": {
      const { response } = data;
      const failed = "error" in response;
      const answer = {
        requestId: response.request_id,
        failure: failed ? response.error : null,
        decision: failed ? null : response.response,
      };
      return { kind: "answer", answer };
    }
    default:
      return data satisfies never;
  }
}
