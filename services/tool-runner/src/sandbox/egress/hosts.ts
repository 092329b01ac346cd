// Decides whether a command may connect to a host and port, from the lists in the settings. Pure.

export interface EgressSettings {
  /** Public hosts: `host` or `*.host`, optionally with `:port`; without a port, 80 and 443. */
  hosts: readonly string[];
  /** Hosts that may have a private address; matched literally. */
  privateHosts: readonly string[];
}

/** Destination of a connection. */
export interface Destination {
  /** As normalized by a URL parser: lower case, canonical addresses, IPv6 without brackets, no trailing dot. */
  host: string;
  port: number;
}

/** `private`: allowed even when it resolves to a private address. */
type Permission = "public" | "private" | "refused";

const portsWhenUnnamed = [80, 443];

/** Parses a proxy's `host:port`; undefined for anything else, including a user name before it. */
export function parseDestination(authority: string, portWhenUnnamed?: number): Destination | undefined {
  if (/[/?#\\@\s]/.test(authority) || !URL.canParse(`http://${authority}/`)) return undefined;
  // The parser canonicalizes decimal, octal, hexadecimal and full-width spellings of an address.
  const host = new URL(`http://${authority}/`).hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const named = /:(\d+)$/.exec(authority)?.[1];
  const port = named === undefined ? portWhenUnnamed : Number(named);
  if (host === "" || port === undefined || port < 1 || port > 65_535) return undefined;
  return { host, port };
}

export function destinationRule(wanted: Destination, settings: EgressSettings): Permission {
  if (settings.privateHosts.some((entry) => matches(entry, wanted))) return "private";
  return settings.hosts.some((entry) => matches(entry, wanted)) ? "public" : "refused";
}

/** Whether any host is allowed. */
export function hasAllowedHosts({ hosts, privateHosts }: EgressSettings): boolean {
  return hosts.length + privateHosts.length > 0;
}

function matches(entry: string, { host, port }: Destination): boolean {
  const below = entry.startsWith("*.");
  const meant = portsWhenUnnamed
    .map((unnamed) => parseDestination(below ? entry.slice(2) : entry, unnamed))
    .find((each) => each?.port === port);
  if (meant === undefined) return false;
  return below ? host.endsWith(`.${meant.host}`) : host === meant.host;
}
