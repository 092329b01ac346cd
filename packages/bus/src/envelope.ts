// How a payload and an answer look on the wire, and the one place where bytes become trusted values.
import { WireError, WireErrorSchema } from "@parley/contracts";
import { z } from "zod";

/** NATS allows 1 MiB by default; half of it leaves room for encodings. Longer content is paged. */
export const maxPayloadBytes = 512 * 1024;

const encoder = new TextEncoder();

/** Throws TOO_LARGE above the cap. */
export function encode(value: unknown, subject: string): Uint8Array {
  const bytes = encoder.encode(JSON.stringify(value));
  if (bytes.length > maxPayloadBytes) {
    throw new WireError(
      "TOO_LARGE",
      `${subject}: ${bytes.length} bytes are more than the ${maxPayloadBytes} one message may have`,
    );
  }
  return bytes;
}

/** Throws INVALID_INPUT that names the subject, the path and the problem. */
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

/** The answer's data, or the WireError the other side sent. */
export function decodeAnswer<S extends z.ZodType>(schema: S, text: string, subject: string): z.infer<S> {
  const answer = decode(AnswerSchema, text, subject);
  if (!answer.ok) throw new WireError(answer.error.code, answer.error.message);
  return parse(schema, answer.data, `${subject} (answer)`);
}
