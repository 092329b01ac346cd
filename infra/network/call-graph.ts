// Who opens connections to whom: the one declaration from which the network policies are generated, and against which
// `npm run test:cluster` checks a running cluster. The owners of servers are those of docs/architecture.md.
import { channelPorts } from "@parley/contracts";

/** A pod by its label `app.kubernetes.io/name`: the four services, the migration and the servers. */
export type PodName =
  | "store"
  | "migrate"
  | "agent-core"
  | "tool-runner"
  | "channel-gateway"
  | "postgres"
  | "redis"
  | "nats";

/** A server with the port that it serves, and the pods that may connect to it. */
interface ServerLink {
  server: "postgres" | "redis" | "nats";
  port: number;
  from: readonly PodName[];
}

export const serverLinks: readonly ServerLink[] = [
  { server: "postgres", port: 5432, from: ["store", "migrate"] },
  { server: "redis", port: 6379, from: ["agent-core"] },
  { server: "nats", port: 4222, from: ["store", "agent-core", "tool-runner", "channel-gateway"] },
];

/** Connections to public addresses. */
export interface PublicLink {
  /** The name of the policy. */
  policy: string;
  from: PodName;
  why: string;
  ports: readonly number[];
}

export const publicLinks: readonly PublicLink[] = [
  { policy: "agent-core-to-model", from: "agent-core", why: "Models on the public internet.", ports: [443] },
  {
    policy: "channel-gateway-to-channels",
    from: "channel-gateway",
    why: "Chat platforms on the public internet: the ports of their entries in packages/contracts/src/channels.",
    ports: channelPorts(),
  },
];

/** Of the component `web`: what `web_fetch` requests. */
export const webLink: PublicLink = {
  policy: "tool-runner-to-web",
  from: "tool-runner",
  why: "",
  ports: [80, 443],
};

/** The only port that pods without a label of Parley may connect to. */
export const entrance = { to: "channel-gateway", portName: "http", port: 8787 } as const satisfies {
  to: PodName;
  portName: string;
  port: number;
};

/** The health listener of the four services: kubelet requests it from the node, pods reach it only with the component `prometheus`. */
export const healthPort = 8080;

/** Whether a pod may connect to a port of another one. `from`: null for a pod without a label of Parley. */
export function mayConnect(from: PodName | null, to: PodName, port: number): boolean {
  // Policies select pods, so the entrance is open to those pods only whose own egress is not restricted.
  if (from === null) return to === entrance.to && port === entrance.port;
  return serverLinks.some((link) => link.server === to && link.port === port && link.from.includes(from));
}
