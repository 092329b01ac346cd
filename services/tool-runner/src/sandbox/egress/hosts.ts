// Decides whether a command may connect to a host and port, from the lists in the settings, and resolves the host to the one address to
// connect to. The name is resolved once, here. The caller connects to the checked address, so a later DNS change cannot redirect the
// connection.
import ipaddr from "ipaddr.js";
import { reservedRange } from "../../network/ip-address.ts";
import type { Address, Resolver } from "../../network/target.ts";

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
  const match = portsWhenUnnamed
    .map((unnamed) => parseDestination(below ? entry.slice(2) : entry, unnamed))
    .find((each) => each?.port === port);
  if (match === undefined) return false;
  return below ? host.endsWith(`.${match.host}`) : host === match.host;
}

type Route =
  | { to: Address }
  /** Not on the list, or at a forbidden address; the text is the reason for the client. */
  | { refused: string }
  /** Allowed, but its name cannot be resolved. */
  | { lost: string };

/** Address kinds allowed for private hosts. Link-local is excluded: cloud metadata services expose credentials there. */
const privateKinds: ReadonlySet<string> = new Set(["private", "loopback", "uniqueLocal", "carrierGradeNat"]);

/** Never rejects: a resolver failure becomes `lost`. */
export async function findRoute(wanted: Destination, settings: EgressSettings, resolve: Resolver): Promise<Route> {
  const permission = destinationRule(wanted, settings);
  const shown = `${wanted.host}:${wanted.port}`;
  if (permission === "refused") {
    return { refused: `${shown} is not in allow_hosts under [tools.exec] in parley.toml` };
  }
  const addresses = await addressesOf(wanted.host, resolve).catch(() => []);
  const [first] = addresses;
  if (first === undefined) return { lost: `the host ${wanted.host} cannot be found` };
  // One forbidden address is enough: the owner of the name must not influence which one is used.
  for (const { address } of addresses) {
    const kind = reservedRange(address);
    if (kind === undefined || (permission === "private" && privateKinds.has(kind))) continue;
    const advice = privateKinds.has(kind)
      ? "; allow_private_hosts under [tools.exec] in parley.toml lists hosts that may be private"
      : "";
    return { refused: `${shown} resolves to an address that is not public (${kind})${advice}` };
  }
  return { to: first };
}

async function addressesOf(host: string, resolve: Resolver): Promise<readonly Address[]> {
  if (!ipaddr.isValid(host)) return resolve(host);
  return [{ address: host, family: ipaddr.parse(host).kind() === "ipv6" ? 6 : 4 }];
}
