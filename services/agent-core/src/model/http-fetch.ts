// A `fetch` for the requests of a model's SDK, over Node's HTTP client. The built-in fetch wraps bodies in web streams; with it
// agent-core takes 17 to 24 % more processor time a turn (docs/performance.md). Kept connections, proxies and certificates are those of Node's global agents.
import type { ClientRequest, IncomingMessage } from "node:http";
import { request as requestTls } from "node:https";
import { text } from "node:stream/consumers";
import { http } from "@parley/kit";

/** The same limit as in the built-in fetch. */
const connectTimeoutMs = 10_000;

/**
 * Sends a request with a text body; other requests, and those that the server redirects, use the built-in fetch. The body of an event
 * stream is the stream of its bytes, without the other ways to read a Response. Rejects with the system's error or an AbortError.
 */
export async function httpFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const { body, method = "POST", signal } = init;
  if (typeof body !== "string" || input instanceof Request) return fetch(input, init);
  const url = new URL(input);
  const send = url.protocol === "https:" ? requestTls : http.request;
  const headers = plainHeaders(init.headers);
  const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = send(url, { method, headers, ...(signal ? { signal } : {}) }, resolve);
    request.on("error", reject);
    limitConnecting(request);
    request.end(body);
  });
  const { statusCode: status = 0, statusMessage: statusText = "" } = incoming;
  if (status >= 300 && status < 400 && incoming.headers.location !== undefined) {
    incoming.destroy();
    return fetch(input, init);
  }
  const isStream = status === 200 && incoming.headers["content-type"]?.startsWith("text/event-stream") === true;
  if (isStream) {
    const headersRead = () => headersOf(incoming);
    const stream = { status, statusText, ok: true, url: url.href, body: incoming };
    return Object.defineProperty(stream, "headers", { get: headersRead }) as unknown as Response;
  }
  // A response without content, such as 204, must have no body at all.
  return new Response((await text(incoming)) || null, { status, statusText, headers: headersOf(incoming) });
}

/** A plain object is sent as it is: building Headers costs more than the rest of a request. */
function plainHeaders(headers: RequestInit["headers"] = {}): Record<string, string> {
  const isPlain = Object.getPrototypeOf(headers) === Object.prototype;
  return isPlain ? (headers as Record<string, string>) : Object.fromEntries(new Headers(headers));
}

function limitConnecting(request: ClientRequest): void {
  const timeout = setTimeout(() => {
    request.destroy(new Error(`connecting to ${request.host} timed out`));
  }, connectTimeoutMs).unref();
  const connected = () => clearTimeout(timeout);
  request.once("close", connected).once("socket", (socket) => {
    if (socket.connecting) socket.once("connect", connected);
    else connected();
  });
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}
