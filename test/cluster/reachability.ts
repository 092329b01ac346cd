// Who reaches whom, tried from inside every pod, against the call graph from which the policies are generated.
import { z } from "zod";
import {
  entrance,
  healthPort,
  mayConnect,
  publicLinks,
  serverLinks,
  type PodName,
} from "../../infra/network/call-graph.ts";
import type { Kubectl } from "./kubectl.ts";
import type { Pod } from "./workloads.ts";

/** An address that a pod tries to connect to. */
export interface Target {
  /** How a report names it, such as `postgres:5432 (postgres-0)`. */
  name: string;
  host: string;
  port: number;
  /** The pod that should listen there; null outside of the namespace. */
  pod: Pod | null;
  /** A public address. */
  isPublic: boolean;
}

export interface Attempt {
  from: Pod;
  target: Target;
  isReached: boolean;
}

const isPodName = (name: string | null): name is PodName =>
  name !== null &&
  ["store", "migrate", "agent-core", "tool-runner", "channel-gateway", "postgres", "redis", "nats"].includes(name);

/** The ports on which a pod listens for others, its health listener included. */
function listeningPorts(app: string | null): number[] {
  const served = serverLinks.filter(({ server }) => server === app).map(({ port }) => port);
  if (served.length > 0) return served;
  if (app === entrance.to) return [healthPort, entrance.port];
  return app === "store" || app === "agent-core" || app === "tool-runner" ? [healthPort] : [];
}

/** NATS's monitor, which listens on loopback: nobody may reach it. */
const natsMonitorPort = 8222;
/** The metadata service of most clouds. */
const metadataAddress = { host: "169.254.169.254", port: 80 };
/** A variable of the pods that kubelet sets. */
const apiServer = { host: "$KUBERNETES_SERVICE_HOST", port: 443 };

function targetsOf(pods: readonly Pod[], publicAddress: { host: string; port: number } | null): Target[] {
  const inside = pods.flatMap((pod) => {
    const { ip, app } = pod;
    if (ip === null) return [];
    const ports = [...listeningPorts(app), ...(app === "nats" ? [natsMonitorPort] : [])];
    return ports.map((port) => ({ name: `${pod.name}:${port}`, host: ip, port, pod, isPublic: false }));
  });
  const outside = (name: string, host: string, port: number, isPublic = false): Target => ({
    name,
    host,
    port,
    pod: null,
    isPublic,
  });
  return [
    ...inside,
    outside("the API server", apiServer.host, apiServer.port),
    outside("the metadata service", metadataAddress.host, metadataAddress.port),
    ...(publicAddress === null
      ? []
      : [outside(`${publicAddress.host}:${publicAddress.port}`, publicAddress.host, publicAddress.port, true)]),
  ];
}

/** Whether the connection must be possible; null: it says nothing about the policies of Parley. */
function isExpected({ app, name }: Pod, target: Target): boolean | null {
  const from = isPodName(app) ? app : null;
  if (target.pod === null) {
    // No policy selects a pod without a label of Parley.
    if (from === null) return null;
    return target.isPublic && publicLinks.some((link) => link.from === from && link.ports.includes(target.port));
  }
  // Policies do not apply to a pod's connections to itself.
  if (target.pod.name === name) return null;
  if (!isPodName(target.pod.app)) return null;
  return target.port !== natsMonitorPort && mayConnect(from, target.pod.app, target.port);
}

/** What differs from the call graph, one line each, and how many attempts were judged. */
export function judge(attempts: readonly Attempt[]): { judged: number; problems: string[] } {
  const problems: string[] = [];
  let judged = 0;
  let leaks = 0;
  for (const { from, target, isReached } of attempts) {
    // Where nothing listens, a refused connection proves nothing.
    if (target.pod?.name === from.name && target.port !== natsMonitorPort && !isReached)
      problems.push(`${target.name}: nothing listens, so that no attempt to connect to it proves anything`);
    const expected = isExpected(from, target);
    if (expected === null) continue;
    judged += 1;
    if (expected === isReached) continue;
    if (isReached) leaks += 1;
    problems.push(
      isReached
        ? `${from.name} reaches ${target.name}, which no policy allows`
        : `${from.name} does not reach ${target.name}, which a policy allows`,
    );
  }
  if (leaks > 0)
    problems.push(
      `${leaks} connections that no policy allows: does the cluster's network plugin enforce NetworkPolicy?`,
    );
  return { judged, problems };
}

/** How a pod can try connections: Node in ours, bash in PostgreSQL's and Redis's images, busybox in that of NATS. */
type Prober = "node" | "bash" | "busybox";

const connectSeconds = 3;

function proberOf(app: string | null): Prober {
  if (app === "nats") return "busybox";
  return app === "postgres" || app === "redis" ? "bash" : "node";
}

/** The command that prints a line for each target: its number and `yes` or `no`. Hosts are addresses, or a variable of the pod. */
export function probeCommand(prober: Prober, targets: readonly Pick<Target, "host" | "port">[]): string[] {
  if (prober === "node") {
    const list = JSON.stringify(targets.map(({ host, port }) => [host, port]));
    return ["node", "--eval", `${nodeProgram}(${list})`];
  }
  const one = ({ host, port }: Pick<Target, "host" | "port">, number: number): string => {
    const attempt =
      prober === "bash"
        ? `timeout ${connectSeconds} bash -c "exec 3<>/dev/tcp/${host}/${port}"`
        : `timeout ${connectSeconds} nc -z -w ${connectSeconds} "${host}" ${port}`;
    return `(if ${attempt} >/dev/null 2>&1; then echo ${number} yes; else echo ${number} no; fi) &`;
  };
  return [prober === "bash" ? "bash" : "sh", "-c", `${targets.map(one).join("\n")}\nwait`];
}

const nodeProgram = `((targets) => targets.forEach(([host, port], number) => {
  const socket = require("node:net").connect({ host: host.startsWith("$") ? process.env[host.slice(1)] : host, port });
  const end = (word) => { socket.destroy(); console.log(number, word); };
  socket.setTimeout(${connectSeconds * 1_000}, () => end("no")).once("error", () => end("no")).once("connect", () => end("yes"));
}))`;

/** Throws when a line is missing: a pod that could not run the attempts must not count as cut off. */
export function parseProbe(output: string, count: number): boolean[] {
  const found = new Map<number, boolean>();
  for (const [, number, word] of output.matchAll(/^(\d+) (yes|no)\s*$/gm)) found.set(Number(number), word === "yes");
  return Array.from({ length: count }, (_, number) => {
    const reached = found.get(number);
    if (reached === undefined) throw new Error(`the pod did not report attempt ${number} of ${count}: ${output}`);
    return reached;
  });
}

/** Tries every target from every running pod. */
export async function tryAll(
  kubectl: Kubectl,
  pods: readonly Pod[],
  publicAddress: { host: string; port: number } | null,
): Promise<Attempt[]> {
  const running = pods.filter(({ isRunning, isDeleted, ip }) => isRunning && !isDeleted && ip !== null);
  const targets = targetsOf(running, publicAddress);
  const perPod = await Promise.all(
    running.map(async (from) => {
      const command = probeCommand(proberOf(from.app), targets);
      const output = await kubectl.run(["exec", from.name, "--container", from.container, "--", ...command]);
      return parseProbe(output, targets.length).map((isReached, number): Attempt => {
        const target = targets[number];
        if (target === undefined) throw new Error("a result without a target");
        return { from, target, isReached };
      });
    }),
  );
  return perPod.flat();
}

const Names = z.array(z.string());

/** Services that cannot resolve the name of NATS. */
export async function namesProblems(kubectl: Kubectl, pods: readonly Pod[]): Promise<string[]> {
  const ours = pods.filter(({ app, isRunning }) => isRunning && proberOf(app) === "node" && app !== null);
  const program = `require("node:dns").lookup("nats", (error) => console.log(JSON.stringify(error === null ? [] : [error.code])))`;
  const found = await Promise.all(
    ours.map(async ({ name, container }) => {
      const output = await kubectl.run(["exec", name, "--container", container, "--", "node", "--eval", program]);
      return Names.parse(JSON.parse(output)).map((code) => `${name} cannot resolve the name nats: ${code}`);
    }),
  );
  return found.flat();
}
