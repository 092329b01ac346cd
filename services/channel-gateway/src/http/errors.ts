// HTTP errors, and the conversion of other errors to them. Internal details are never exposed.
import { registry, WireError } from "@parley/contracts";
import type { z } from "zod";
import { SessionBusyError } from "../operations/session-busy.ts";
import { IdempotencyKeyReusedError } from "../ingress/inbox-writer.ts";
import { OverLimitError } from "../ingress/over-limit.ts";
import { MessageTooLargeError } from "../ingress/authorized-input.ts";
import { InvalidInputError, OperationError } from "../operations/operation.ts";
import { ServiceUnavailableError } from "../operations/session-service.ts";

/** An error response: its status, a code for programs and a message for people. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly status: number;
  readonly code: string;
  /** The part of the request that caused the error, for the OpenAI format. */
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    more: { param?: string; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = more.param ?? null;
    this.headers = more.headers ?? {};
  }
}

const retryAfterSeconds = 2;
/** Turns usually take several seconds. */
const busyRetrySeconds = 5;

/** Converts any thrown value; an unknown one is a bug and becomes a generic 500. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof OperationError) return new HttpError(error.status, error.code, error.message);
  if (error instanceof InvalidInputError) return invalid(error.issues, "request");
  if (error instanceof MessageTooLargeError) return new HttpError(413, "message_too_large", error.message);
  if (error instanceof IdempotencyKeyReusedError) return keyReused(error);
  if (error instanceof OverLimitError) return overLimit(error);
  if (error instanceof SessionBusyError) {
    return new HttpError(409, "busy", error.message, { headers: { "retry-after": String(busyRetrySeconds) } });
  }
  if (error instanceof ServiceUnavailableError) return unavailable(error.message);
  if (WireError.is(error)) return fromWire(error);
  if (isFastifyError(error)) return fromFastify(error);
  return new HttpError(500, "internal", "internal error; see the log of the gateway");
}

function keyReused({ message }: IdempotencyKeyReusedError): HttpError {
  // OpenAI clients retry a 409 automatically.
  return new HttpError(409, "idempotency_key_reused", message, { headers: { "x-should-retry": "false" } });
}

/** Pauses that clients of OpenAI wait for by themselves are not longer. */
const maxClientPauseSeconds = 60;

function overLimit({ message, retryAfterSeconds }: OverLimitError): HttpError {
  const retry = retryAfterSeconds > maxClientPauseSeconds ? { "x-should-retry": "false" } : undefined;
  return new HttpError(429, "over_limit", message, {
    headers: { "retry-after": String(retryAfterSeconds), ...retry },
  });
}

function fromWire(error: WireError): HttpError {
  switch (error.code) {
    case "NOT_FOUND":
      return new HttpError(404, "not_found", error.message);
    case "CONFLICT":
      return new HttpError(409, "conflict", error.message);
    case "TOO_LARGE":
      return new HttpError(413, "too_large", error.message);
    case "INVALID_INPUT":
      return new HttpError(400, "invalid_request", withoutSubject(error.message));
    case "UNAVAILABLE":
    case "TIMEOUT":
    case "CANCELLED":
    case "FENCED":
    case "STALE_EPOCH":
      return unavailable("the store is unavailable; nothing unconfirmed was stored, try again");
    default:
      return new HttpError(500, "internal", "internal error; see the log of the gateway");
  }
}

/** Removes the bus subject from a validation error of another service; HTTP callers know fields, not subjects. */
function withoutSubject(message: string): string {
  const [subject = "", ...rest] = message.split(": ");
  const isSubject = rest.length > 0 && registry.some((contract) => subject.endsWith(`.${contract.subject}`));
  return isSubject ? rest.join(": ") : message;
}

export function unavailable(message: string): HttpError {
  return new HttpError(503, "unavailable", message, { headers: { "retry-after": String(retryAfterSeconds) } });
}

interface FastifyFailure {
  statusCode: number;
  code: string;
  message: string;
}

function isFastifyError(error: unknown): error is FastifyFailure {
  return (
    error instanceof Error &&
    "statusCode" in error &&
    typeof error.statusCode === "number" &&
    "code" in error &&
    typeof error.code === "string"
  );
}

function fromFastify(error: FastifyFailure): HttpError {
  switch (error.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new HttpError(413, "body_too_large", "the request body exceeds the limit of this route");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new HttpError(415, "unsupported_media_type", "the body must be application/json");
    case "FST_ERR_CTP_EMPTY_JSON_BODY":
    case "FST_ERR_CTP_INVALID_JSON_BODY":
      return new HttpError(400, "invalid_json", "the body is not valid JSON");
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return new HttpError(400, "invalid_content_length", "Content-Length does not match the body");
    default:
      return error.statusCode < 500
        ? new HttpError(error.statusCode, "bad_request", error.message)
        : new HttpError(500, "internal", "internal error; see the log of the gateway");
  }
}

/** Converts the first issue of a schema validation; unknown fields are named. */
export function invalid(error: z.core.$ZodError, where = "body"): HttpError {
  const issue = error.issues[0];
  if (issue === undefined) return new HttpError(400, "invalid_request", `${where}: does not match the schema`);
  const path = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const inside = path === "" ? "" : ` in ${path}`;
    return new HttpError(
      400,
      "unknown_field",
      `unknown field ${issue.keys.map((key) => `"${key}"`).join(", ")}${inside}`,
      {
        param: issue.keys[0] ?? path,
      },
    );
  }
  return new HttpError(400, "invalid_request", `${path === "" ? where : path}: ${issue.message}`, { param: path });
}

export function plainBody(error: HttpError): object {
  return { error: { code: error.code, message: error.message } };
}

/** The error body in OpenAI's format. */
export function openaiBody(error: HttpError): object {
  return {
    error: { message: error.message, type: openaiType(error.status), param: error.param, code: error.code },
  };
}

function openaiType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 404) return "not_found_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}
