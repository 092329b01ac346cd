// HTTP requests to a gateway. When one does not answer, the next is tried with the same idempotency key.

import { randomUUID } from "node:crypto";

import { errorMessage } from "@parley/contracts";

import type { z } from "zod";

import { CliError } from "../errors.ts";
import { ErrorAnswer } from "./shapes.ts";
import type { Target } from "./target.ts";

const TIMEOUT_MS = 10_000;

/** No gateway answered at all. */
export class GatewayUnreachableError extends CliError {
  override readonly name = "NoGateway";
}

/** A gateway answered with an error. */
export class RequestRejectedError extends CliError {
  override readonly name = "Refused";
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, code: string | undefined, message: string, fix: string | undefined) {
    super(message, fix === undefined ? {} : { fix });
    this.status = status;
    this.code = code;
  }
}

export interface Answered<T> {
  readonly data: T;
  /** Local time minus the gateway's, in milliseconds, from its Date header; null without one. */
  readonly clockSkewMs: number | null;
}

interface Request {
  path: string;
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  body?: unknown;
  timeoutMs?: number;
}

export class Gateway {
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }

  get<S extends z.ZodType>(path: string, schema: S): Promise<z.output<S>> {
    return this.#call({ path }, schema).then(({ data }) => data);
  }

  getTimed<S extends z.ZodType>(path: string, schema: S): Promise<Answered<z.output<S>>> {
    return this.#call({ path }, schema);
  }

  post<S extends z.ZodType>(path: string, body: unknown, schema: S): Promise<z.output<S>> {
    return this.change("POST", path, body, schema);
  }

  /** `timeoutMs` applies per gateway. */
  change<S extends z.ZodType>(
    method: "POST" | "PATCH" | "DELETE",
    path: string,
    body: unknown,
    schema: S,
    timeoutMs = TIMEOUT_MS,
  ): Promise<z.output<S>> {
    return this.#call({ path, method, body, timeoutMs }, schema).then(({ data }) => data);
  }

  #fix(): string {
    const { elsewhere, home } = this.#target;
    if (elsewhere) return "Check --url (or PARLEY_URL), and whether Parley runs there.";
    return home.state === null ? "Start Parley with: npm start" : "Run parley doctor to find the cause.";
  }

  async #call<S extends z.ZodType>(
    { path, method = "GET", body, timeoutMs = TIMEOUT_MS }: Request,
    schema: S,
  ): Promise<Answered<z.output<S>>> {
    const headers: Record<string, string> = { authorization: `Bearer ${this.#target.token()}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (method !== "GET") headers["idempotency-key"] = randomUUID();
    const failures: string[] = [];
    for (const url of this.#target.urls()) {
      let response: Response;
      let text: string;
      const begun = Date.now();
      try {
        response = await fetch(`${url}${path}`, {
          headers,
          redirect: "error",
          signal: AbortSignal.timeout(timeoutMs),
          method,
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
        text = await response.text();
      } catch (error) {
        failures.push(`${url}: ${reasonOf(error)}`);
        continue;
      }
      const ended = Date.now();
      if (response.status === 503 && this.#target.urls().length > failures.length + 1) {
        failures.push(`${url}: ${refusal(response.status, text).message}`);
        continue;
      }
      if (!response.ok) throw refusal(response.status, text);
      return { data: read(url, path, schema, text), clockSkewMs: skew(response.headers.get("date"), begun, ended) };
    }
    throw new GatewayUnreachableError(`No gateway answers (${failures.join("; ")}).`, {
      fix: this.#fix(),
    });
  }
}

function read<S extends z.ZodType>(url: string, path: string, schema: S, text: string): z.output<S> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CliError(`${url} is not a Parley gateway.`, { fix: "Check --url." });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CliError(
    `${url}${path} returned an unknown response format (${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}).`,
    { fix: "Use the parley version of the cluster: parley doctor compares them." },
  );
}

function refusal(status: number, text: string): RequestRejectedError {
  let parsed: z.ZodSafeParseResult<z.infer<typeof ErrorAnswer>> | undefined;
  try {
    parsed = ErrorAnswer.safeParse(JSON.parse(text));
  } catch {
    // Not JSON, so not from the gateway.
  }
  const said = parsed?.success === true ? parsed.data.error : undefined;
  const message = said?.message ?? `The gateway answered with status ${status}.`;
  const fix =
    status === 401
      ? "The token differs from the cluster's: unset PARLEY_TOKEN, or name the right file with --token-file."
      : undefined;
  return new RequestRejectedError(status, said?.code, message, fix);
}

/** The reason of a failed connection; fetch puts it into the cause of its error. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "no answer in time";
  const { cause } = error;
  if (cause instanceof Error) {
    const code = "code" in cause ? String(cause.code) : "";
    if (code === "ECONNREFUSED") return "connection refused";
    return cause.message === "" ? code : cause.message;
  }
  return errorMessage(error);
}

/** The Date header has whole seconds, so the middle of that second is compared with the middle of the call. */
function skew(date: string | null, begun: number, ended: number): number | null {
  const at = date === null ? Number.NaN : Date.parse(date);
  return Number.isNaN(at) ? null : Math.round((begun + ended) / 2 - (at + 500));
}
