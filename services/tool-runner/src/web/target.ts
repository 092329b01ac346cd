// From an address as the model writes it to the one machine that may be asked for it. Names are resolved here, once; who
// connects uses the address that was checked, so that a name cannot mean another machine a moment later.
import { inRange, parseRange, specialKind, type Range } from "./address.ts";

export interface TargetPolicy {
  /** Names of hosts of the private network that may be asked. */
  privateHosts: ReadonlySet<string>;
  /** Addresses of the private network that may be asked. */
  privateRanges: readonly Range[];
  /** Ports of public hosts. */
  ports: ReadonlySet<number>;
}

export interface Address {
  address: string;
  family: 4 | 6;
}

/** Every address of a name. Throws where there is none. */
export type Resolver = (hostname: string) => Promise<Address[]>;

/** A page that must not be asked for; the message is for the model. */
export class RefusedTarget extends Error {
  override readonly name = "RefusedTarget";
}

export interface Target {
  url: URL;
  /** Where to connect to. */
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

/** Throws RefusedTarget. */
export async function findTarget(text: string, policy: TargetPolicy, resolve: Resolver): Promise<Target> {
  // The parser turns decimal, octal, hexadecimal and full-width spellings of an address into the usual one.
  if (!URL.canParse(text))
    throw new RefusedTarget(`"${text.slice(0, 200)}" is not a complete address, e.g. https://example.org/.`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new RefusedTarget(`Only http and https are fetched, not ${url.protocol.slice(0, -1)}.`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new RefusedTarget("The address holds a user name or password; give it without.");
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = await addressesOf(host, resolve);
  const first = addresses[0];
  if (first === undefined) throw new RefusedTarget(`The host "${host}" has no address.`);
  // One bad address is enough: which of them is used is not for the name's owner to play with.
  const judged = addresses.map(({ address }) => judge(host, address, policy));
  const refused = judged.find((each) => each.refused !== undefined)?.refused;
  if (refused !== undefined) {
    throw new RefusedTarget(
      `"${host}" is not fetched: it leads to ${refused}. The operator can allow it under [tools.web] allow_private.`,
    );
  }
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  if (!policy.ports.has(port) && !judged.every((each) => each.meant)) {
    throw new RefusedTarget(`Port ${port} is not one that pages are fetched from (${[...policy.ports].join(", ")}).`);
  }
  return { url, address: first };
}

async function addressesOf(host: string, resolve: Resolver): Promise<Address[]> {
  if (/^[\d.]+$/.test(host)) return [{ address: host, family: 4 }];
  if (host.includes(":")) return [{ address: host, family: 6 }];
  try {
    return await resolve(host);
  } catch {
    throw new RefusedTarget(`The host "${host}" cannot be found.`);
  }
}

/** `meant`: the operator has named it. */
function judge(host: string, address: string, policy: TargetPolicy): { refused: string | undefined; meant: boolean } {
  const meant =
    policy.privateHosts.has(host.replace(/\.$/, "")) || policy.privateRanges.some((range) => inRange(address, range));
  const kind = specialKind(address);
  return { meant, refused: meant || kind === undefined ? undefined : `an address that is not public (${kind})` };
}
