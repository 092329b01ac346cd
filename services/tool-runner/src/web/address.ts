// Which addresses of the internet a page may be fetched from. Pure. What is not an ordinary public address is refused, whatever
// it is written like: private, loopback, link-local, carrier-grade NAT, multicast, and IPv6 forms that carry an IPv4 address.
import ipaddr from "ipaddr.js";

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** IPv6 as it is given to hosts: everything else is special, reserved or not in use. */
const globalUnicast: Range = [ipaddr.parse("2000::"), 3];
/** Public by their number, but answered inside a provider's network: the host's own control plane. */
export const controlPlanes: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** What kind of address it is, where that kind is refused; undefined for a public address. `address` without brackets. */
export function specialKind(address: string): string | undefined {
  if (!ipaddr.isValid(address) || address.includes("%")) return "no address";
  const parsed = ipaddr.parse(address);
  if (controlPlanes.has(parsed.toString())) return "a cloud provider's control plane";
  const kind = parsed.range();
  if (kind !== "unicast") return kind;
  return parsed.kind() === "ipv6" && !parsed.match(globalUnicast) ? "reserved" : undefined;
}

/** An address or a range such as `10.1.0.0/16`; undefined for anything else, e.g. a host's name. */
export function parseRange(text: string): Range | undefined {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.parse(text);
  return [address, address.kind() === "ipv4" ? 32 : 128];
}

export function inRange(address: string, range: Range): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  return parsed.kind() === range[0].kind() && parsed.match(range);
}
