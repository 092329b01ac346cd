// The network policies that the servers of a parley.toml need in addition to those of the manifests. Pure.
import { isIP } from "node:net";
import type { ParleySettings } from "@parley/contracts";
import ipaddr from "ipaddr.js";
import { publicLinks, webLink, type PodName } from "./call-graph.ts";
import { egressPolicy, inNamespace, policyText, publicPeers } from "./policies.ts";

/** A server that a setting names. */
export interface Opening {
  /** The path of the setting, such as `channels.irc.net.host`. */
  setting: string;
  from: PodName;
  host: string;
  port: number;
}

/** The service that connects to the servers of each section. */
const services: Readonly<Record<string, PodName>> = {
  channels: "channel-gateway",
  observers: "channel-gateway",
  oidc: "channel-gateway",
  llm: "agent-core",
  memory: "agent-core",
  voice: "agent-core",
  attachments: "agent-core",
  hooks: "tool-runner",
  mcp: "tool-runner",
  tools: "tool-runner",
};
/** Addresses of Parley itself. */
const own = /^mcp\.server\.|public_url$|lmtp_host$/;

/** Every server outside of the pod that the settings name. */
export function openings(settings: ParleySettings): Opening[] {
  return Object.entries(services)
    .flatMap(([section, from]) => inside(settings[section as keyof ParleySettings], section, from))
    .filter(({ host, setting }) => !own.test(setting) && !/^(?:localhost|127\.|\[?::1\]?$)/.test(host));
}

function inside(value: unknown, path: string, from: PodName): Opening[] {
  if (typeof value === "string") return ofUrl(value, path, from);
  if (typeof value !== "object" || value === null) return [];
  const fields = value as Record<string, unknown>;
  return Object.entries(fields).flatMap(([name, inner]) => {
    const port = name.endsWith("host") ? fields[name.replace(/host$/, "port")] : undefined;
    if (typeof inner === "string" && typeof port === "number")
      return [{ setting: `${path}.${name}`, from, host: inner, port }];
    return inside(inner, `${path}.${name}`, from);
  });
}

function ofUrl(text: string, setting: string, from: PodName): Opening[] {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return [];
  const { hostname, port, protocol } = new URL(text);
  const host = hostname.replaceAll(/[[\]]/g, "");
  return [{ setting, from, host, port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port) }];
}

/**
 * The policies as YAML, and the settings for whose host nobody can tell an address: names without a public ending. `hasWeb`: the overlay
 * has the component `web`.
 */
export function settingsPolicies(list: readonly Opening[], hasWeb: boolean): { text: string; unknown: Opening[] } {
  const links = hasWeb ? [...publicLinks, webLink] : publicLinks;
  const unknown: Opening[] = [];
  const policies = list.flatMap((opening) => {
    const { setting, from, host, port } = opening;
    const peers = peersOf(host);
    if (peers === undefined) unknown.push(opening);
    if (
      peers === undefined ||
      (peers === publicPeers && links.some((link) => link.from === from && link.ports.includes(port)))
    )
      return [];
    const name = `${from}-to-${setting}`.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
    return [egressPolicy(name.slice(0, 63).replace(/-$/, ""), from, peers, port)];
  });
  return {
    text: policyText(["For the servers of a parley.toml, in addition to the policies of the base."], policies),
    unknown,
  };
}

/** Undefined: a name of a network of one's own, whose address only its operator knows. */
function peersOf(host: string): readonly object[] | undefined {
  if (isIP(host) !== 0) {
    const isPublic = ipaddr.parse(host).range() === "unicast";
    return isPublic ? publicPeers : [{ ipBlock: { cidr: `${host}/${isIP(host) === 4 ? 32 : 128}` } }];
  }
  const namespace = /^[^.]+\.([^.]+)\.svc(?:\.cluster\.local)?$/.exec(host)?.[1];
  if (namespace !== undefined) return [inNamespace(namespace)];
  return !host.includes(".") || /\.(?:internal|local|lan|home\.arpa|test)$/.test(host) ? undefined : publicPeers;
}
