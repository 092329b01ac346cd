// A fake of a Kubernetes cluster at the interface of kubectl: it keeps the objects that are applied, makes pods of workloads, and decides
// connections by the applied network policies, with an evaluation of its own. Unknown commands fail.
import assert from "node:assert/strict";
import type { Kubectl, RunOptions } from "../kubectl.ts";
import { KubectlError } from "../kubectl.ts";
import { at } from "../../deploy/support/manifests.ts";

interface FakeClusterOptions {
  context: string;
  namespace: string;
  /** Renders a folder, as `kubectl kustomize` does. */
  kustomize: (folder: string) => string;
  minor?: string;
  /** Rights that the user lacks, such as `create secrets`. */
  denied?: readonly string[];
  /** The images that nodes do not have. */
  missingImages?: readonly string[];
  /** Objects are changed as if the cluster's manifests were wrong. */
  alter?: (object: Item) => Item;
  /** false: like a network plugin without policies. */
  enforces?: boolean;
  existingNamespaces?: readonly string[];
}

type Item = Record<string, unknown>;

interface FakePod {
  name: string;
  labels: Record<string, string>;
  containers: { name: string; image: string }[];
  ip: string;
  ports: Map<string, number>;
}

const workloadKinds = new Set(["Deployment", "StatefulSet", "Job"]);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

export class FakeCluster implements Kubectl {
  readonly commands: string[][] = [];
  readonly namespaces: Set<string>;
  readonly #options: FakeClusterOptions;
  #objects: Item[] = [];

  constructor(options: FakeClusterOptions) {
    this.#options = options;
    this.namespaces = new Set(options.existingNamespaces ?? ["default"]);
  }

  start(args: readonly string[]): never {
    throw new Error(`the fake has no ${args[0]}`);
  }

  async run(args: readonly string[], { input = "" }: RunOptions = {}): Promise<string> {
    this.commands.push([...args]);
    const [verb = "", what = ""] = args;
    switch (verb) {
      case "config":
        return `other\n${this.#options.context}\n`;
      case "version": {
        const { minor = "36" } = this.#options;
        return JSON.stringify({ serverVersion: { major: "1", minor, gitVersion: `v1.${minor}.2` } });
      }
      case "auth": {
        const asked = args.slice(2).join(" ");
        if (this.#options.denied?.includes(asked)) throw new KubectlError(args, "no\n", "");
        return "yes\n";
      }
      case "kustomize":
        return this.#options.kustomize(what);
      case "create":
        return this.#createNamespace(args, JSON.parse(input) as Item);
      case "apply":
        return this.#apply(args, JSON.parse(input) as Item);
      case "get":
        return JSON.stringify({
          items: what === "pods" ? this.#pods().map((pod) => this.#podObject(pod)) : this.#workloads(),
        });
      case "wait":
        return "";
      case "exec":
        return this.#exec(args);
      case "delete":
        return this.#delete(args);
      default:
        throw new KubectlError(args, "", `the fake has no ${verb}`);
    }
  }

  #createNamespace(args: readonly string[], object: Item): string {
    assert.equal(object["kind"], "Namespace");
    const name = text(at(object, "metadata", "name"));
    if (this.namespaces.has(name)) throw new KubectlError(args, "", `namespaces "${name}" already exists`);
    this.namespaces.add(name);
    return "";
  }

  #apply(args: readonly string[], list: Item): string {
    assert.ok(args.includes("--validate=strict"), "unknown fields must be refused");
    const { namespace, alter = (object: Item) => object } = this.#options;
    assert.ok(this.namespaces.has(namespace), "the namespace does not exist");
    for (const each of list["items"] as Item[]) {
      assert.equal(at(each, "metadata", "namespace"), namespace, `${text(each["kind"])} in another namespace`);
      this.#objects.push(alter(each));
    }
    return "";
  }

  #delete(args: readonly string[]): string {
    const [, kind, name = ""] = args;
    if (kind === "namespace") {
      this.namespaces.delete(name);
      this.#objects = [];
    } else {
      const names = new Set(args.filter((each) => each.startsWith("pod/")).map((each) => each.slice(4)));
      this.#objects = this.#objects.filter(
        (each) => each["kind"] !== "Pod" || !names.has(text(at(each, "metadata", "name"))),
      );
    }
    return "";
  }

  #pods(): FakePod[] {
    const templates = this.#objects.flatMap((object) => {
      const name = text(at(object, "metadata", "name"));
      if (object["kind"] === "Pod") return [{ name, template: object, count: 1 }];
      if (!workloadKinds.has(text(object["kind"])) || object["kind"] === "Job") return [];
      return [{ name, template: at(object, "spec", "template"), count: Number(at(object, "spec", "replicas") ?? 1) }];
    });
    let number = 0;
    return templates.flatMap(({ name, template, count }) =>
      Array.from({ length: count }, (_, index): FakePod => {
        const containers = at(template, "spec", "containers") as { name: string; image: string; ports?: unknown }[];
        number += 1;
        const ports = (at(containers[0], "ports") ?? []) as { name: string; containerPort: number }[];
        return {
          name: count === 1 && name.startsWith("probe") ? name : `${name}-${index}`,
          labels: (at(template, "metadata", "labels") ?? {}) as Record<string, string>,
          containers,
          ip: `10.244.0.${number}`,
          ports: new Map(ports.map((port) => [port.name, port.containerPort])),
        };
      }),
    );
  }

  #podObject(pod: FakePod): Item {
    const isMissing = pod.containers.some(({ image }) => this.#options.missingImages?.includes(image));
    const waiting = { reason: "ErrImagePull", message: "not found" };
    return {
      metadata: { name: pod.name, labels: pod.labels },
      spec: { containers: pod.containers },
      status: {
        phase: isMissing ? "Pending" : "Running",
        podIP: pod.ip,
        conditions: [{ type: "Ready", status: isMissing ? "False" : "True" }],
        containerStatuses: pod.containers.map(({ name, image }) => ({
          name,
          image,
          ready: !isMissing,
          restartCount: 0,
          state: isMissing ? { waiting } : {},
        })),
      },
    };
  }

  #workloads(): Item[] {
    return this.#objects
      .filter(({ kind }) => workloadKinds.has(text(kind)))
      .map((object) => {
        const replicas = Number(at(object, "spec", "replicas") ?? 1);
        const counts = { replicas, readyReplicas: replicas, updatedReplicas: replicas, succeeded: 1 };
        return { ...object, status: counts };
      });
  }

  #exec(args: readonly string[]): string {
    const from = this.#pods().find(({ name }) => name === args[1]);
    if (from === undefined) throw new KubectlError(args, "", `pods "${args[1]}" not found`);
    const command = args.slice(args.indexOf("--") + 1).join(" ");
    if (command.includes("node:dns")) return "[]\n";
    return targetsIn(command)
      .map(({ host, port }, number) => `${number} ${this.connects(from, host, port) ? "yes" : "no"}`)
      .join("\n");
  }

  /** As a node with policies decides: both sides must allow it, and something must listen. */
  connects(from: FakePod, host: string, port: number): boolean {
    const to = this.#pods().find(({ ip }) => ip === host);
    const listens = to === undefined || [...to.ports.values()].includes(port);
    if (from.name === to?.name) return listens;
    if (this.#options.enforces === false) return listens;
    return (
      listens &&
      this.#allows("Egress", from, to, host, port) &&
      (to === undefined || this.#allows("Ingress", to, from, from.ip, port))
    );
  }

  /** `own`: the pod that policies select; the other side may be outside of the namespace. */
  #allows(
    type: "Egress" | "Ingress",
    own: FakePod,
    other: FakePod | undefined,
    otherIp: string,
    port: number,
  ): boolean {
    const selecting = this.#objects.filter(
      (object) =>
        object["kind"] === "NetworkPolicy" &&
        ((at(object, "spec", "policyTypes") ?? []) as string[]).includes(type) &&
        selects(at(object, "spec", "podSelector"), own.labels),
    );
    if (selecting.length === 0) return true;
    const [rules, peers] = type === "Egress" ? ["egress", "to"] : ["ingress", "from"];
    // Named ports are those of the pod that is connected to.
    const served = type === "Egress" ? other : own;
    return selecting
      .flatMap((object) => (at(object, "spec", rules) ?? []) as Item[])
      .some((rule) => {
        const ports = rule["ports"] as { port: number | string; protocol: string }[] | undefined;
        const fits = ports?.some(
          (each) => each.protocol === "TCP" && (each.port === port || served?.ports.get(String(each.port)) === port),
        );
        const sides = rule[peers] as Item[] | undefined;
        return fits !== false && (sides === undefined || sides.some((peer) => isPeer(peer, other, otherIp)));
      });
  }
}

function selects(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  const wanted = (at(selector, "matchLabels") ?? {}) as Record<string, string>;
  assert.equal(at(selector, "matchExpressions"), undefined, "the fake has no matchExpressions");
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

function isPeer(peer: Item, other: FakePod | undefined, ip: string): boolean {
  if (peer["ipBlock"] !== undefined)
    // The addresses of the tests: pods and the API server are private, 169.254 is excluded, everything else is public.
    return !/^(?:10\.|169\.254\.)/.test(ip) && text(at(peer, "ipBlock", "cidr")).endsWith("/0");
  // Other namespaces have no pods here.
  if (peer["namespaceSelector"] !== undefined) return false;
  return other !== undefined && selects(peer["podSelector"], other.labels);
}

/** The targets of a command of `probeCommand`, in their order. */
function targetsIn(command: string): { host: string; port: number }[] {
  const list = /\((\[\[.*\]\])\)$/s.exec(command)?.[1];
  const pairs: [string, string | number][] =
    list === undefined
      ? [...command.matchAll(/dev\/tcp\/([^/]+)\/(\d+)|-w \d+ "([^"]+)" (\d+)/g)].map(([, a, b, c, d]) => [
          a ?? c ?? "",
          b ?? d ?? "",
        ])
      : (JSON.parse(list) as [string, number][]);
  return pairs.map(([host, port]) => ({
    host: host === "$KUBERNETES_SERVICE_HOST" ? "10.96.0.1" : host,
    port: Number(port),
  }));
}
