// Requests to the gateway that served this page. The browser adds the cookie; nothing here knows a token.
import type { OperationDefinition, OperationOutput, operations } from "@parley/contracts";
import { signal } from "@preact/signals";

/** Whether this browser is signed in; null: not known yet. */
export const signedIn = signal<boolean | null>(null);

/** An error response of the gateway, or no response at all (`offline`). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: string;
  readonly status: number;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** The request may succeed when it is repeated. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 503 || this.status === 502;
  }
}

export interface RequestOptions {
  query?: Readonly<Record<string, string | number | boolean | undefined>>;
  body?: unknown;
  /** A repeated key is the same operation. */
  key?: string;
  signal?: AbortSignal;
}

/** Sends a request and returns the parsed body. Throws ApiError. */
export async function request(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
  const { query = {}, body, key } = options;
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const isFile = body instanceof Blob;
  const response = await fetch(search === "" ? path : `${path}?${search}`, {
    method,
    credentials: "same-origin",
    headers: {
      ...(body === undefined ? {} : { "content-type": isFile ? "application/octet-stream" : "application/json" }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    ...(body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  }).catch((error: unknown) => {
    if (options.signal?.aborted === true) throw error;
    throw new ApiError(0, "offline", "The gateway does not respond. Check that Parley is running; this page retries.");
  });
  if (response.status === 401 && path !== "/api/console/session") signedIn.value = false;
  if (!response.ok) throw await errorOf(response);
  return response.status === 204 ? undefined : response.json();
}

async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => undefined)) as
    | { error?: { code?: string; message?: string } }
    | undefined;
  const { code = "error", message = `The gateway answered with status ${response.status}.` } = body?.error ?? {};
  return new ApiError(response.status, code, message);
}

type Operations = typeof operations;

/** The result of an operation, by its name in the contracts. */
export type Result<K extends keyof Operations> = Operations[K] extends OperationDefinition
  ? OperationOutput<Operations[K]>
  : never;

/** Calls the route of an operation; the type argument names it, for the type of the result. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller names the operation
export async function call<K extends keyof Operations>(
  method: "GET" | "POST" | "PATCH" | "DELETE",
  path: string,
  options?: RequestOptions,
): Promise<Result<K>> {
  return (await request(method, path, options)) as Result<K>;
}

/** A readable text for any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
