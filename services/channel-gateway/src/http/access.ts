// Authorizes HTTP callers by token, Host and Origin. Pure. Host and Origin are checked on every request, so that a page in the owner's
// browser cannot reach a gateway on loopback, neither by DNS rebinding nor by a cross-origin request.
import { sameDigest, sha256 } from "../channels/digest.ts";

const loopbackNames = new Set(["localhost", "127.0.0.1", "::1"]);
const wildcardAddresses = new Set(["0.0.0.0", "::", ""]);

/** The host names under which this gateway may be called, including loopback. */
export function ownNames(listenHost: string, allowedHosts: readonly string[]): ReadonlySet<string> {
  const names = new Set([...loopbackNames, ...allowedHosts.map((name) => name.toLowerCase())]);
  if (!wildcardAddresses.has(listenHost)) names.add(listenHost.toLowerCase());
  return names;
}

/** The host name of a Host header in lower case, without port and brackets; null when the header is invalid. */
export function hostName(header: string | undefined): string | null {
  if (header === undefined) return null;
  const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]]+))(?::\d{1,5})?$/i.exec(header);
  return (match?.[1] ?? match?.[2])?.toLowerCase() ?? null;
}

export function hostAllowed(header: string | undefined, names: ReadonlySet<string>): boolean {
  const name = hostName(header);
  return name !== null && (names.has("*") || names.has(name));
}

/**
 * A request without Origin does not come from another site's page. With an Origin, it must match the (already checked) Host or a listed
 * origin.
 */
export function originAllowed(
  origin: string | undefined,
  hostHeader: string | undefined,
  allowedOrigins: readonly string[],
): boolean {
  if (origin === undefined) return true;
  if (allowedOrigins.includes(origin)) return true;
  const parsed = URL.parse(origin);
  if (parsed === null || hostHeader === undefined) return false;
  return (parsed.protocol === "http:" || parsed.protocol === "https:") && parsed.host === hostHeader.toLowerCase();
}

/** Lets a page of a listed origin call the API. It may send every header: clients of OpenAI and MCP add their own. */
export function crossOriginHeaders(origin: string, requested: string | undefined): Record<string, string> {
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-headers": requested ?? "authorization, content-type, idempotency-key, last-event-id",
    "access-control-allow-methods": "GET, POST, PATCH, DELETE",
    "access-control-expose-headers": "x-request-id, retry-after, x-should-retry",
    "access-control-max-age": "600",
    vary: "origin",
  };
}

const bearerPattern = /^Bearer +(\S+) *$/i;
const protocolPrefix = "parley.bearer.";

/** Returns the token from the Authorization header or, for WebSockets in browsers, from a subprotocol. Never from the query. */
export function tokenOf(headers: {
  authorization?: string | undefined;
  protocols?: string | undefined;
}): string | null {
  if (headers.authorization !== undefined) return bearerPattern.exec(headers.authorization)?.[1] ?? null;
  for (const protocol of headers.protocols?.split(",") ?? []) {
    const name = protocol.trim();
    if (name.startsWith(protocolPrefix)) return name.slice(protocolPrefix.length);
  }
  return null;
}

/** Whether a token matches one of the hashes. Every hash is compared, each in constant time. */
export function tokenAccepted(token: string, hashes: readonly Buffer[]): boolean {
  const digest = sha256(token);
  let accepted = false;
  for (const hash of hashes) if (sameDigest(digest, hash)) accepted = true;
  return accepted;
}
