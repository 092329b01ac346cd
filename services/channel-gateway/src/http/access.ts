// Who may call: the token, the Host and the Origin of a request. Pure. Host and Origin are checked on every request, so that
// a page in the owner's browser cannot reach a gateway on loopback, by a name that it made point there or by a plain call.
import { sameDigest, sha256 } from "../digest.ts";

const loopbackNames = new Set(["localhost", "127.0.0.1", "::1"]);
const wildcardAddresses = new Set(["0.0.0.0", "::", ""]);

/** The names besides loopback under which this gateway may be called. */
export function ownNames(listenHost: string, allowedHosts: readonly string[]): ReadonlySet<string> {
  const names = new Set([...loopbackNames, ...allowedHosts.map((name) => name.toLowerCase())]);
  if (!wildcardAddresses.has(listenHost)) names.add(listenHost.toLowerCase());
  return names;
}

/** The host name in a Host header, lower case, without port and brackets; null when it is none. */
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
 * A request without Origin does not come from another site's page. One with it must come from the gateway's own pages, which
 * the (already checked) Host tells, or from a listed origin.
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

const bearerPattern = /^Bearer +(\S+) *$/i;
const protocolPrefix = "parley.bearer.";

/** The token of a request: the Authorization header, or for WebSockets in browsers a subprotocol. Never the query. */
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

/** Whether a token is one of those whose hashes are given. Every hash is compared, each in constant time. */
export function tokenAccepted(token: string, hashes: readonly Buffer[]): boolean {
  const digest = sha256(token);
  let accepted = false;
  for (const hash of hashes) if (sameDigest(digest, hash)) accepted = true;
  return accepted;
}
