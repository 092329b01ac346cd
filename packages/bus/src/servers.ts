// Parses the URL of the bus: hosts, login, and whether TLS is required. Pure.

export interface BusServers {
  /** `host:port` each, without credentials. */
  hosts: string[];
  user?: string;
  pass?: string;
  /** True when one of the URLs has the scheme `tls`. */
  tls: boolean;
}

/**
 * Parses a list of URLs `nats://user:password@host:port`, separated by commas; `tls://` requires TLS for all of them. The first URL contains the
 * login. Throws an Error without the password in its message for any other scheme and for invalid URLs.
 */
export function parseBusUrl(url: string): BusServers {
  const urls = url.split(",").map((each) => parseServerUrl(each.trim()));
  const hosts = urls.map((each) => each.host);
  const tls = urls.some((each) => each.protocol === "tls:");
  const [first] = urls;
  if (first === undefined || first.username === "") return { hosts, tls };
  return { hosts, tls, user: decodeURIComponent(first.username), pass: decodeURIComponent(first.password) };
}

function parseServerUrl(text: string): URL {
  const url = URL.parse(text.includes("://") ? text : `nats://${text}`);
  if (url === null || url.host === "") throw new Error("not an address such as nats://user:password@host:4222");
  if (url.protocol !== "nats:" && url.protocol !== "tls:") {
    throw new Error(`unknown scheme "${url.protocol.slice(0, -1)}": use nats:// or, with TLS, tls://`);
  }
  return url;
}
