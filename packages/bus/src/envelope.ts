// Encoding of payloads, and decoding and validation of replies; other failures become WireErrors.
import { WireError, WireErrorSchema } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { PermissionViolationError, RequestError, TimeoutError } from "nats";
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
  const value = parseJson(text);
  if (value === undefined) throw new WireError("INVALID_INPUT", `${subject}: not JSON`);
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

/** The request was aborted by its caller. */
export function cancelled(subject: string): WireError {
  return new WireError("CANCELLED", `${subject}: cancelled`);
}

export function noReply(subject: string, cause?: unknown): WireError {
  return new WireError("TIMEOUT", `${subject}: no reply in time`, { cause });
}

/** The error of a failed request: that of the reply, or CANCELLED, UNAVAILABLE or TIMEOUT. */
export function asWireError(error: unknown, subject: string): WireError {
  if (WireError.is(error)) return error;
  if (error instanceof Error && error.name === "AbortError") return cancelled(subject);
  if (error instanceof RequestError && error.isNoResponders()) {
    return new WireError("UNAVAILABLE", `${subject}: no replica serves it`, { cause: error });
  }
  if (error instanceof TimeoutError || (error instanceof RequestError && error.cause instanceof TimeoutError)) {
    return noReply(subject, error);
  }
  if (isDenied(error)) {
    const remedy = "the NATS permissions are from another version: install this version's nats.conf and reload NATS";
    return new WireError("UNAVAILABLE", `${subject}: NATS denies this request: ${remedy}`, { cause: error });
  }
  return new WireError("UNAVAILABLE", `${subject}: the bus is not connected`, { cause: error });
}

/** NATS has refused the request: the permissions of its sender do not allow it. */
export function isDenied(error: unknown): boolean {
  return error instanceof PermissionViolationError || (error instanceof Error && isDenied(error.cause));
}
