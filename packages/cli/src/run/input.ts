// The input of `parley run --input-format stream-json`: one JSON object per line. Pure.

import { parseJson } from "@parley/kit";
import { z } from "zod";

import { firstIssue } from "../io/io.ts";
import type { FileContent } from "./attachments.ts";

/** It becomes part of a path. */
const requestId = z.string().regex(/^[A-Za-z0-9]{1,32}$/);

const InputLine = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("user"),
    uuid: z.string().optional(),
    message: z.object({
      role: z.literal("user"),
      content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]),
    }),
  }),
  z.object({
    type: z.literal("control_request"),
    request_id: z.string(),
    request: z.looseObject({ subtype: z.string() }),
  }),
  /** The answer to an approval question or a hook. */
  z.object({
    type: z.literal("control_response"),
    response: z.union([
      z.strictObject({
        subtype: z.literal("success").optional(),
        request_id: requestId,
        // Validated together with its question.
        response: z.unknown(),
      }),
      z.looseObject({ subtype: z.literal("error"), request_id: requestId, error: z.string() }),
    ]),
  }),
]);

export interface UserInput {
  readonly text: string;
  readonly files: readonly FileContent[];
  /** As the program wrote it. */
  readonly content: string | readonly unknown[];
  readonly uuid: string | null;
}

export type Input =
  | ({ kind: "user" } & UserInput)
  | { kind: "control"; id: string; request: ControlRequest }
  | { kind: "answer"; answer: ProgramAnswer }
  /** A line that needs no reaction: a sign of life, or a type of a newer program. */
  | { kind: "nothing" }
  /** A message with content that cannot be used; the program receives an error result. */
  | { kind: "unusable"; problem: string }
  /** Invalid input. */
  | { kind: "wrong"; problem: string };

export interface ControlRequest {
  readonly subtype: string;
  readonly [field: string]: unknown;
}

/** A program's answer to a question of the run. */
export interface ProgramAnswer {
  readonly requestId: string;
  /** Set if the program could not decide. */
  readonly failure: string | null;
  readonly decision: unknown;
}

/** The message of a stream that repeats a program's message. */
export function replayOf({ content, uuid }: UserInput, sessionId: string) {
  const message = { role: "user", content };
  return { type: "user", message, session_id: sessionId, parent_tool_use_id: null, uuid, isReplay: true } as const;
}

const known: ReadonlySet<unknown> = new Set(["user", "control_request", "control_response"]);

export function readInput(line: string): Input {
  const value = parseJson(line);
  if (value === undefined) return { kind: "wrong", problem: "a line of standard input is not valid JSON" };
  const type = typeof value === "object" && value !== null && "type" in value ? value.type : undefined;
  if (typeof type === "string" && !known.has(type)) return { kind: "nothing" };
  const parsed = InputLine.safeParse(value);
  if (!parsed.success) return { kind: "wrong", problem: `standard input: ${firstIssue(parsed.error)}` };
  const { data } = parsed;
  switch (data.type) {
    case "user":
      return readMessage(data.message.content, data.uuid ?? null);
    case "control_request":
      return { kind: "control", id: data.request_id, request: data.request };
    case "control_response": {
      const { response } = data;
      const failed = response.subtype === "error";
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

function readMessage(content: string | readonly { type: string }[], uuid: string | null): Input {
  if (typeof content === "string") {
    return content.trim() === "" ? empty : { kind: "user", text: content, files: [], content, uuid };
  }
  const texts: string[] = [];
  const files: FileContent[] = [];
  for (const block of content) {
    const read = readBlock(block, files.length + 1);
    if ("problem" in read) return { kind: "unusable", problem: read.problem };
    if ("text" in read) texts.push(read.text);
    else files.push(read);
  }
  const text = texts.join("\n\n");
  if (text.trim() === "" && files.length === 0) return empty;
  return { kind: "user", text, files, content, uuid };
}

const empty: Input = { kind: "unusable", problem: "the message contains no text" };

const TextBlock = z.object({ type: z.literal("text"), text: z.string() });
const FileBlock = z.object({
  type: z.enum(["image", "document"]),
  title: z.string().nullish(),
  source: z.discriminatedUnion("type", [
    z.object({ type: z.literal("base64"), media_type: z.string(), data: z.base64() }),
    z.object({ type: z.literal("text"), media_type: z.string().optional(), data: z.string() }),
    z.object({ type: z.literal("url"), url: z.string() }),
  ]),
});

function readBlock(block: { type: string }, n: number): { text: string } | FileContent | { problem: string } {
  if (block.type === "text") {
    const parsed = TextBlock.safeParse(block);
    return parsed.success ? { text: parsed.data.text } : { problem: `text block: ${firstIssue(parsed.error)}` };
  }
  if (block.type !== "image" && block.type !== "document") {
    return {
      problem: `content blocks of type "${block.type.slice(0, 64)}" are not supported; use text, image or document`,
    };
  }
  const parsed = FileBlock.safeParse(block);
  if (!parsed.success) return { problem: `${block.type} block: ${firstIssue(parsed.error)}` };
  const { source, title } = parsed.data;
  if (source.type === "url") {
    return { problem: `${block.type} block: remote files are not fetched; send the content as base64` };
  }
  if (source.type === "text") return { text: source.data };
  const extension = /^[a-z]+\/([a-z0-9]+)/.exec(source.media_type)?.[1] ?? "bin";
  return {
    name: title ?? `${block.type}-${n}.${extension}`,
    content: new Uint8Array(Buffer.from(source.data, "base64")),
  };
}
