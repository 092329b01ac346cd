// Encoding and validation of payloads and replies: the only place where bytes become validated values.
import { WireError, WireErrorSchema } from "@parley/contracts";
import { z } from "zod";

/** NATS allows 1 MiB by default; half of it leaves room for encoding. Longer content is paged. */
export const maxPayloadBytes = 512 * 1024;

const encoder = new TextEncoder();

/** Throws TOO_LARGE above the limit. */
export function encode(value: unknown, subject: string): Uint8Array {
  const bytes = encoder.encode(JSON.stringify(value));
  if (bytes.length > maxPayloadBytes) {
    throw new WireError(
      "TOO_LARGE",
      `${subject}: ${bytes.length} bytes exceed the limit of ${maxPayloadBytes} bytes per message`,
    );
  }
  return bytes;
}

/** Throws INVALID_INPUT with subject, path and problem. */
export function decode<S extends z.ZodType>(schema: S, text: string, subject: string): z.infer<S> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new WireError("INVALID_INPUT", `${subject}: not JSON`, { cause: error });
  }
  return parse(schema, value, subject);
}

function parse<S extends z.ZodType>(schema: S, value: unknown, subject: string): z.infer<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue === undefined || issue.path.length === 0 ? "(root)" : issue.path.join(".");
  throw new WireError("INVALID_INPUT", `${subject}: ${path}: ${issue?.message ?? "does not match the contract"}`);
}

export function encodeAnswer(data: unknown, subject: string): Uint8Array {
  return encode({ ok: true, data }, subject);
}

export function encodeFailure(error: WireError): Uint8Array {
  return encoder.encode(JSON.stringify({ ok: false, error: error.toData() }));
}

const AnswerSchema = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), data: z.unknown() }),
  z.object({ ok: z.literal(false), error: WireErrorSchema }),
]);

/** Returns the reply's data or throws its WireError. */
export function decodeAnswer<S extends z.ZodType>(schema: S, text: string, subject: string): z.infer<S> {
  const answer = decode(AnswerSchema, text, subject);
  if (!answer.ok) throw new WireError(answer.error.code, answer.error.message);
  return parse(schema, answer.data, `${subject} (reply)`);
}
