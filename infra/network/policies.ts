// The network policies of the manifests, generated from the call graph. Pure.
import { stringify } from "yaml";
import { entrance, publicLinks, serverLinks, webLink, type PodName, type PublicLink } from "./call-graph.ts";

const nameLabel = "app.kubernetes.io/name";
const partLabel = "app.kubernetes.io/part-of";
const header = "# Generated from infra/network/call-graph.ts by `npm run docs`; do not edit.\n";

/**
 * The public internet, without the addresses that `web_fetch` refuses (services/tool-runner/src/network/ip-address.ts): private, link-local,
 * carrier-grade NAT, cloud metadata and other special ranges. 2000::/3 is the public part of IPv6.
 */
const publicAddresses = [
  {
    cidr: "0.0.0.0/0",
    except: [
      "0.0.0.0/8",
      "10.0.0.0/8",
      "100.64.0.0/10",
      "127.0.0.0/8",
      "168.63.129.16/32",
      "169.254.0.0/16",
      "172.16.0.0/12",
      "192.0.0.0/24",
      "192.0.2.0/24",
      "192.31.196.0/24",
      "192.52.193.0/24",
      "192.88.99.0/24",
      "192.168.0.0/16",
      "192.175.48.0/24",
      "198.18.0.0/15",
      "198.51.100.0/24",
      "203.0.113.0/24",
      "224.0.0.0/4",
      "240.0.0.0/4",
    ],
  },
  { cidr: "2000::/3", except: ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"] },
];

/** Peers of a rule: every public address. */
export const publicPeers = publicAddresses.map((ipBlock) => ({ ipBlock }));

/** Where pods resolve names, by the component that adds it; the base has that of most clusters. */
const nameServers = {
  base: {
    to: [{ ...inNamespace("kube-system"), podSelector: { matchLabels: { "k8s-app": "kube-dns" } } }],
    port: 53,
  },
  // The address on which NodeLocal DNSCache listens on every node.
  "node-local-dns": { to: [{ ipBlock: { cidr: "169.254.20.10/32" } }], port: 53 },
  // The pods behind OpenShift's service of port 53: policies see their port.
  "openshift-dns": { to: [inNamespace("openshift-dns")], port: 5353 },
};

interface Policy {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  spec: Record<string, unknown>;
}

/** Files of k8s/ by path, with their text. */
export function policyFiles(): Map<string, string> {
  const nothing = "Denies all traffic, then permits single connections. Each server has one owner.";
  return new Map([
    [
      "k8s/base/network-policies.yaml",
      file(
        [
          nothing,
          "Labels in this namespace select the servers; an overlay selects servers elsewhere.",
          ...publicLinks.map(({ policy, why }) => `${policy}: ${why}`),
        ],
        [denyAll(), names("names", "base"), ...egressToServers(), ...publicLinks.map(toPublic), people()],
      ),
    ],
    [
      "k8s/overlays/dev/network-policies.yaml",
      file(
        [
          "The same rules for the servers' ingress. No rule lets a server open connections: the policy `parley` denies it.",
        ],
        serverLinks.map(({ server, port, from }) =>
          policy(server === "nats" ? "nats-from-services" : `${server}-from-owner`, pods(server), {
            policyTypes: ["Ingress"],
            ingress: [{ from: from.map((name) => ({ podSelector: pods(name) })), ports: [tcp(port)] }],
          }),
        ),
      ),
    ],
    [
      "k8s/overlays/prod/network-policies.yaml",
      file(
        [
          "Egress to the servers: in this example to the namespace `parley-servers`; for managed servers use an ipBlock. Each has one owner.",
          "Copy this file and change the selectors.",
        ],
        egressToServers().map(({ metadata: { name }, spec, ...rest }) => ({
          ...rest,
          metadata: { name },
          spec: { egress: [{ to: [inNamespace("parley-servers")], ports: portsOf(spec) }] },
        })),
      ),
    ],
    [
      "k8s/components/web/network-policy.yaml",
      file(["The addresses that `web_fetch` connects to: public ones."], [toPublic(webLink)]),
    ],
    ...(["node-local-dns", "openshift-dns"] as const).map((component): [string, string] => [
      `k8s/components/${component}/network-policy.yaml`,
      file([], [names(`names-${component}`, component)]),
    ]),
  ]);
}

function file(comments: readonly string[], policies: readonly Policy[]): string {
  return `${header}${policyText(comments, policies)}`;
}

/** The policies as YAML, below comments. */
export function policyText(comments: readonly string[], policies: readonly Policy[]): string {
  const text = policies.map((each) => stringify(each, { lineWidth: 0, aliasDuplicateObjects: false })).join("---\n");
  return `${comments.map((line) => `# ${line}\n`).join("")}${text}`;
}

function denyAll(): Policy {
  return policy("parley", { matchLabels: { [partLabel]: "parley" } }, { policyTypes: ["Ingress", "Egress"] });
}

function names(name: string, place: keyof typeof nameServers): Policy {
  const { to, port } = nameServers[place];
  const ports = ["UDP", "TCP"].map((protocol) => ({ protocol, port }));
  return policy(name, { matchLabels: { [partLabel]: "parley" } }, { policyTypes: ["Egress"], egress: [{ to, ports }] });
}

function egressToServers(): Policy[] {
  return serverLinks.flatMap(({ server, port, from }) =>
    from.map((name) =>
      policy(`${name}-to-${server}`, pods(name), {
        policyTypes: ["Egress"],
        egress: [{ to: [{ podSelector: pods(server) }], ports: [tcp(port)] }],
      }),
    ),
  );
}

function portsOf(spec: Policy["spec"]): unknown {
  return (spec["egress"] as { ports: unknown }[])[0]?.ports;
}

function toPublic({ policy: name, from, ports }: PublicLink): Policy {
  return policy(name, pods(from), {
    policyTypes: ["Egress"],
    egress: [{ to: publicPeers, ports: ports.map(tcp) }],
  });
}

function people(): Policy {
  return policy(`people-to-${entrance.to}`, pods(entrance.to), {
    policyTypes: ["Ingress"],
    ingress: [{ ports: [{ protocol: "TCP", port: entrance.portName }] }],
  });
}

function policy(name: string, podSelector: unknown, rest: Record<string, unknown>): Policy {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, labels: { [partLabel]: "parley" } },
    spec: { podSelector, ...rest },
  };
}

function pods(name: PodName) {
  return { matchLabels: { [nameLabel]: name } };
}

/** Connections from a pod to one port of others. */
export function egressPolicy(name: string, from: PodName, to: readonly object[], port: number): Policy {
  return policy(name, pods(from), { policyTypes: ["Egress"], egress: [{ to, ports: [tcp(port)] }] });
}

export function inNamespace(name: string) {
  return { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } };
}

function tcp(port: number) {
  return { protocol: "TCP", port };
}
