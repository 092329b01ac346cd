// The cookie of a signed-in browser, and which requests may use it. Pure.
import type { IncomingHttpHeaders } from "node:http";

/** A browser sends cookies of a host to all its ports, so the name contains the port: several clusters on one machine do not collide. */
export function cookieName(host: string | undefined): string {
  return `parley_console_${/:(\d+)$/.exec(host ?? "")?.[1] ?? "default"}`;
}

const valuePattern = /^[A-Za-z0-9_-]{43}$/;

/** The secret in the cookie of this host; null without a well-formed one. */
export function cookieSecret({ cookie, host }: IncomingHttpHeaders): string | null {
  const wanted = cookieName(host);
  for (const pair of cookie?.split(";") ?? []) {
    const [name = "", value = ""] = pair.trim().split("=");
    if (name === wanted) return valuePattern.test(value) ? value : null;
  }
  return null;
}

/**
 * Whether the cookie counts for this request. The browser must say that the request comes from a page of this gateway: a changing
 * request and a WebSocket by its Origin, a reading one by `Sec-Fetch-Site`, which also tells pages of another port apart.
 */
export function cookieCounts(method: string, headers: IncomingHttpHeaders): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return false;
  if (isOwnOrigin(headers)) return true;
  const reads = (method === "GET" || method === "HEAD") && headers.upgrade === undefined;
  return reads && headers.origin === undefined;
}

function isOwnOrigin({ origin, host }: IncomingHttpHeaders): boolean {
  return origin !== undefined && host !== undefined && URL.parse(origin)?.host === host.toLowerCase();
}

export interface CookieOptions {
  host: string | undefined;
  /** The Origin of the request: the scheme that the browser uses, also behind a proxy. */
  origin: string | undefined;
  /** 0 deletes the cookie. */
  maxAgeSeconds: number;
}

/** The Set-Cookie header. */
export function cookieHeader(secret: string, { host, origin, maxAgeSeconds }: CookieOptions): string {
  const secure = origin?.startsWith("https://") === true ? "; Secure" : "";
  return `${cookieName(host)}=${secret}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${secure}`;
}
