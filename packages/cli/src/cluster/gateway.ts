// HTTP requests to a gateway. When one does not answer, the next is tried with the same idempotency key.

import { randomUUID } from "node:crypto";

import { type Attachment, AttachmentSchema, errorMessage } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { z } from "zod";

import { CliError, firstIssue } from "../io/io.ts";
import type { Route } from "./api.ts";
import type { Target } from "./target.ts";

const defaultTimeoutMs = 10_000;
const uploadTimeoutMs = 120_000;

/** No gateway answered at all. */
export class GatewayUnreachableError extends CliError {
  override readonly name = "GatewayUnreachableError";
}

/** A gateway answered with an error. */
export class RequestRejectedError extends CliError {
  override readonly name = "RequestRejectedError";
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, code: string | undefined, message: string, fix: string | undefined) {
    super(message, { fix });
    this.status = status;
    this.code = code;
  }
}

export interface Answered<T> {
  readonly data: T;
  /** Local time minus the gateway's, in milliseconds, from its Date header; null without one. */
  readonly clockSkewMs: number | null;
}

export class Gateway {
  readonly #target: Target;

  constructor(target: Target) {
    this.#target = target;
  }

  /**
   * Sends a request to the gateways in turn until one answers. `timeoutMs` applies to each. A POST, PATCH or DELETE has one
   * idempotency key for all gateways. Throws GatewayUnreachableError, RequestRejectedError, or CliError for an unknown response format.
   */
  async run<O extends z.ZodType>(
    route: Route<O>,
    input: Readonly<Record<string, unknown>> = {},
    timeoutMs = defaultTimeoutMs,
  ): Promise<z.output<O>> {
    return (await this.runWithClockSkew(route, input, timeoutMs)).data;
  }

  /** Like `run`, with the difference between the local clock and the gateway's. */
  async runWithClockSkew<O extends z.ZodType>(
    { http, output }: Route<O>,
    input: Readonly<Record<string, unknown>> = {},
    timeoutMs = defaultTimeoutMs,
  ): Promise<Answered<z.output<O>>> {
    if (http === undefined) throw new Error("the operation has no route");
    const { method } = http;
    const fields = new Map(Object.entries(input).filter(([, value]) => value !== undefined));
    let path = http.path.replaceAll(/:(\w+)/g, (_, name: string) => {
      if (!fields.has(name)) throw new Error(`the route ${http.path} needs the field ${name}`);
      const value = String(fields.get(name));
      fields.delete(name);
      return encodeURIComponent(value);
    });
    const headers: Record<string, string> = { authorization: `Bearer ${this.#target.token()}` };
    if (method !== "GET") headers["idempotency-key"] = randomUUID();
    let body: string | null = null;
    if (method === "GET" && fields.size > 0)
      path += `?${new URLSearchParams([...fields].map(([name, value]): [string, string] => [name, String(value)])).toString()}`;
    if (method === "POST" || method === "PATCH") {
      headers["content-type"] = "application/json";
      body = JSON.stringify(Object.fromEntries(fields));
    }
    const { url, response, text, begun, ended } = await this.#send(path, { headers, method, body }, timeoutMs);
    return { data: read(url, path, output, text), clockSkewMs: skew(response.headers.get("date"), begun, ended) };
  }

  /** Stores a file, to be named in a message. Throws GatewayUnreachableError or RequestRejectedError. */
  async upload(name: string, content: Uint8Array<ArrayBuffer>): Promise<Attachment> {
    const path = `/api/attachments?${new URLSearchParams({ name }).toString()}`;
    const headers = {
      authorization: `Bearer ${this.#target.token()}`,
      "content-type": "application/octet-stream",
      "idempotency-key": randomUUID(),
    };
    const { url, text } = await this.#send(path, { headers, method: "POST", body: content }, uploadTimeoutMs);
    return read(url, path, AttachmentSchema, text);
  }

  /** Sends a request to the first gateway that answers. Throws RequestRejectedError for an error response. */
  async #send(path: string, init: RequestInit, timeoutMs: number) {
    const failures: string[] = [];
    for (const url of this.#target.urls()) {
      let response: Response;
      let text: string;
      const begun = Date.now();
      try {
        const signal = AbortSignal.timeout(timeoutMs);
        response = await fetch(`${url}${path}`, { ...init, redirect: "error", signal });
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
      return { url, response, text, begun, ended };
    }
    throw new GatewayUnreachableError(`No gateway answers (${failures.join("; ")}).`, { fix: this.#fix() });
  }

  #fix(): string {
    const { explicitUrl, home } = this.#target;
    if (explicitUrl) return "Check --url (or PARLEY_URL), and whether Parley runs there.";
    return home.state === null ? "Start Parley with: npm start" : "Run parley doctor to find the cause.";
  }
}

/** The answer; null while no gateway answers or is ready, which may pass during a long wait. */
export async function unlessAway<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    const mayPass =
      error instanceof GatewayUnreachableError || (error instanceof RequestRejectedError && error.status >= 500);
    if (!mayPass) throw error;
    return null;
  }
}

function read<S extends z.ZodType>(url: string, path: string, schema: S, text: string): z.output<S> {
  const value = parseJson(text);
  if (value === undefined) throw new CliError(`${url} is not a Parley gateway.`, { fix: "Check --url." });
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new CliError(`${url}${path} returned an unknown response format (${firstIssue(parsed.error)}).`, {
    fix: "Use the version of the cluster: parley doctor compares them.",
  });
}

const Refusal = z.object({ error: z.object({ message: z.string(), code: z.string().optional() }) });
const tokenFix = "The token differs from the cluster's: unset PARLEY_TOKEN, or name the right file with --token-file.";

function refusal(status: number, text: string): RequestRejectedError {
  const error = Refusal.safeParse(parseJson(text)).data?.error;
  const message = error?.message ?? `The gateway answered with status ${status}.`;
  return new RequestRejectedError(status, error?.code, message, status === 401 ? tokenFix : undefined);
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
