// Resolves a URL from the model to the one address that may be contacted. Names are resolved here, once; the caller connects to
// the checked address, so that a later DNS answer cannot redirect the request (DNS rebinding).
import { inRange, parseRange, reservedRange, type Range } from "./ip-address.ts";

export interface TargetPolicy {
  /** Allowed host names of the private network. */
  privateHosts: ReadonlySet<string>;
  /** Allowed addresses of the private network. */
  privateRanges: readonly Range[];
  /** Allowed ports of public hosts. */
  ports: ReadonlySet<number>;
}

export interface Address {
  address: string;
  family: 4 | 6;
}

/** All addresses of a name. Throws when there is none. */
export type Resolver = (hostname: string) => Promise<Address[]>;

/** A page that must not be fetched; the message is for the model. */
export class BlockedTargetError extends Error {
  override readonly name = "BlockedTargetError";
}

export interface Target {
  url: URL;
  /** The address to connect to. */
  address: Address;
}

/** `allowPrivate`: names, addresses or ranges, as in the settings. */
export function targetPolicy(allowPrivate: readonly string[], ports: readonly number[]): TargetPolicy {
  const entries = allowPrivate.map((entry) => ({ entry, range: parseRange(entry) }));
  return {
    privateHosts: new Set(entries.flatMap(({ entry, range }) => (range === undefined ? [entry.toLowerCase()] : []))),
    privateRanges: entries.flatMap(({ range }) => (range === undefined ? [] : [range])),
    ports: new Set(ports),
  };
}

/** Throws BlockedTargetError. */
export async function findTarget(text: string, policy: TargetPolicy, resolve: Resolver): Promise<Target> {
  // The parser turns decimal, octal, hexadecimal and full-width spellings of an address into the usual one.
  if (!URL.canParse(text))
    throw new BlockedTargetError(`"${text.slice(0, 200)}" is not a complete URL such as https://example.org/.`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new BlockedTargetError(`Only http and https URLs can be fetched, not ${url.protocol.slice(0, -1)}.`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new BlockedTargetError("The URL contains a user name or password; remove it.");
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = await addressesOf(host, resolve);
  const first = addresses[0];
  if (first === undefined) throw new BlockedTargetError(`The host "${host}" has no address.`);
  // One refused address is enough: otherwise the owner of the name could influence which one is used.
  const judged = addresses.map(({ address }) => judge(host, address, policy));
  const refused = judged.find((each) => each.refused !== undefined)?.refused;
  if (refused !== undefined) {
    throw new BlockedTargetError(
      `"${host}" was not fetched: it resolves to ${refused}. The operator can allow it under [tools.web] allow_private.`,
    );
  }
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  if (!policy.ports.has(port) && !judged.every((each) => each.isAllowed)) {
    throw new BlockedTargetError(`Port ${port} is not allowed; allowed ports are ${[...policy.ports].join(", ")}.`);
  }
  return { url, address: first };
}

async function addressesOf(host: string, resolve: Resolver): Promise<Address[]> {
  if (/^[\d.]+$/.test(host)) return [{ address: host, family: 4 }];
  if (host.includes(":")) return [{ address: host, family: 6 }];
  try {
    return await resolve(host);
  } catch {
    throw new BlockedTargetError(`The host "${host}" cannot be resolved.`);
  }
}

/** `isAllowed`: the operator has allowed it. */
function judge(
  host: string,
  address: string,
  policy: TargetPolicy,
): { refused: string | undefined; isAllowed: boolean } {
  const isAllowed =
    policy.privateHosts.has(host.replace(/\.$/, "")) || policy.privateRanges.some((range) => inRange(address, range));
  const kind = reservedRange(address);
  return {
    isAllowed,
    refused: isAllowed || kind === undefined ? undefined : `an address that is not public (${kind})`,
  };
}
