// From a host that a command asks for to the one address that is connected to. The name is resolved here, once; who connects uses
// the address that was checked, so that a name cannot mean another machine a moment later.
import ipaddr from "ipaddr.js";
import { specialKind } from "../../web/address.ts";
import type { Address, Resolver } from "../../web/target.ts";
import { permissionFor, type Destination, type EgressSettings } from "./hosts.ts";

type Route =
  | { to: Address }
  /** Not on the list, or at an address that is not for commands: `reason` is for whoever reads the answer. */
  | { refused: string }
  /** It is allowed, and cannot be found. */
  | { lost: string };

/** Kinds of addresses a host may have that is listed as private. Link-local is not among them: clouds tell their secrets there. */
const privateKinds: ReadonlySet<string> = new Set(["private", "loopback", "uniqueLocal", "carrierGradeNat"]);

/** Rejects with nothing: what the resolver throws is `lost`. */
export async function findRoute(wanted: Destination, settings: EgressSettings, resolve: Resolver): Promise<Route> {
  const permission = permissionFor(wanted, settings);
  const shown = `${wanted.host}:${wanted.port}`;
  if (permission === "refused") {
    return { refused: `${shown} is not in allow_hosts under [tools.exec] in parley.toml` };
  }
  const addresses = await addressesOf(wanted.host, resolve).catch(() => []);
  const [first] = addresses;
  if (first === undefined) return { lost: `the host ${wanted.host} cannot be found` };
  // One bad address is enough: which of them is used is not for the name's owner to play with.
  for (const { address } of addresses) {
    const kind = specialKind(address);
    if (kind === undefined || (permission === "private" && privateKinds.has(kind))) continue;
    const advice = privateKinds.has(kind)
      ? "; allow_private_hosts under [tools.exec] in parley.toml is for hosts that are meant to"
      : "";
    return { refused: `${shown} leads to an address that is not public (${kind})${advice}` };
  }
  return { to: first };
}

async function addressesOf(host: string, resolve: Resolver): Promise<readonly Address[]> {
  if (!ipaddr.isValid(host)) return resolve(host);
  return [{ address: host, family: ipaddr.parse(host).kind() === "ipv6" ? 6 : 4 }];
}
