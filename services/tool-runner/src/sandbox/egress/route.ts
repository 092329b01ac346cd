// Resolves a requested host to the one address to connect to. The name is resolved once, here. The caller connects to the checked
// address, so a later DNS change cannot redirect the connection.
import ipaddr from "ipaddr.js";
import { reservedRange } from "../../network/ip-address.ts";
import type { Address, Resolver } from "../../network/target.ts";
import { destinationRule, type Destination, type EgressSettings } from "./hosts.ts";

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
