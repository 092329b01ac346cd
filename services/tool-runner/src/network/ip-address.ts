// Decides which IP addresses pages may be fetched from. Pure. Refuses every address that is not public, in any notation:
// private, loopback, link-local, carrier-grade NAT, multicast, and IPv6 forms that contain an IPv4 address.
import ipaddr from "ipaddr.js";

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** The IPv6 range assigned to hosts: all others are special, reserved or unused. */
const globalUnicast: Range = [ipaddr.parse("2000::"), 3];
/** Public addresses that lead to the control plane inside a cloud provider's network. */
export const controlPlanes: ReadonlySet<string> = new Set(["168.63.129.16"]);

/** The kind of a refused address; undefined for a public address. `address` has no brackets. */
export function reservedRange(address: string): string | undefined {
  if (!ipaddr.isValid(address) || address.includes("%")) return "invalid address";
  const parsed = ipaddr.parse(address);
  if (controlPlanes.has(parsed.toString())) return "a cloud provider's control plane";
  const kind = parsed.range();
  if (kind !== "unicast") return kind;
  return parsed.kind() === "ipv6" && !parsed.match(globalUnicast) ? "reserved" : undefined;
}

/** Parses an address or a range such as `10.1.0.0/16`; undefined for anything else, e.g. a host name. */
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
