// Which hosts a command may ask for: the list of the settings, and whether a host and port are on it. Pure.

export interface EgressSettings {
  /** Public hosts: `host`, `*.host`, either with `:port`; without a port 80 and 443. */
  hosts: readonly string[];
  /** Hosts that may be at a private address, literally. */
  privateHosts: readonly string[];
}

/** Where a command wants to go. */
export interface Destination {
  /** As a URL's parser writes it: lower case, addresses in their usual form, IPv6 without brackets, no dot at the end. */
  host: string;
  port: number;
}

/** `private`: also where it leads to a private address. */
type Permission = "public" | "private" | "refused";

const portsWhenUnnamed = [80, 443];

/** `host:port` as a proxy is given it; undefined for what is no such thing, a user name before it included. */
export function parseDestination(authority: string, portWhenUnnamed?: number): Destination | undefined {
  if (/[/?#\\@\s]/.test(authority) || !URL.canParse(`http://${authority}/`)) return undefined;
  // The parser turns decimal, octal, hexadecimal and full-width spellings of an address into the usual one.
  const host = new URL(`http://${authority}/`).hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  const named = /:(\d+)$/.exec(authority)?.[1];
  const port = named === undefined ? portWhenUnnamed : Number(named);
  if (host === "" || port === undefined || port < 1 || port > 65_535) return undefined;
  return { host, port };
}

export function permissionFor(wanted: Destination, settings: EgressSettings): Permission {
  if (settings.privateHosts.some((entry) => matches(entry, wanted))) return "private";
  return settings.hosts.some((entry) => matches(entry, wanted)) ? "public" : "refused";
}

/** Whether there is anything to reach. */
export function isOpen({ hosts, privateHosts }: EgressSettings): boolean {
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
