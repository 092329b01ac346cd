// The command line of `npm run test:cluster`. Pure.
import { randomBytes } from "node:crypto";
import { parseArgs } from "node:util";
import { chooseScenes, type LoadScene } from "../chaos/load/scenes.ts";

const phases = ["reachability", "starts", "scenes"] as const;
type Phase = (typeof phases)[number];

export interface ClusterOptions {
  context: string;
  /** A new namespace, which is deleted afterwards. */
  namespace: string;
  /** Images that replace those of the manifests, by the name of the manifests without the tag, such as `parley/store`. */
  images: ReadonlyMap<string, string>;
  phases: readonly Phase[];
  scenes: readonly LoadScene[];
  /** Messages a second. */
  rate: number;
  durationSeconds: number;
  /** Leaves the namespace, to look at it. */
  keep: boolean;
  /** A public address with its port that the cluster reaches; null: connections to the internet are not tried. */
  publicAddress: { host: string; port: number } | null;
}

const usage = `npm run test:cluster -- --context <name> [options]

Applies k8s/overlays/dev into a new namespace of the Kubernetes cluster that the kubeconfig context names, checks who reaches
whom from inside every pod, which starts are held back, and scenes under load, and deletes the namespace.
The images must be on the nodes, or the nodes must be able to pull them.

  --image NAME=IMAGE        use another image for one of the manifests, such as parley/store=registry.example.com/store:1; repeat it
  --phases NAME,NAME        only some of: ${phases.join(", ")}
  --scenes NAME,NAME        only scenes whose names begin so, such as rollout
  --rate MESSAGES           messages a second (20)
  --duration-seconds N      how long each scene lasts (60)
  --namespace NAME          the name of the new namespace (parley-test-<random>)
  --public-address HOST:PORT  an address on the internet that the cluster reaches, to check who may connect to it
  --keep                    do not delete the namespace`;

/** Thrown for a wrong command line, and for a cluster that cannot be used: the message says what to do. */
export class CannotRun extends Error {
  override readonly name = "CannotRun";
}

/** Throws CannotRun. */
export function parseOptions(args: readonly string[]): ClusterOptions {
  const { values } = parsed(args);
  const { context } = values;
  if (context === undefined)
    throw new CannotRun(`no context: name the cluster that may be changed, it is never chosen by itself\n\n${usage}`);
  const chosen = (values.phases ?? phases.join(",")).split(",").map((name) => {
    const phase = phases.find((each) => each === name);
    if (phase === undefined) throw new CannotRun(`no phase is called ${name}; there are ${phases.join(", ")}`);
    return phase;
  });
  const namespace = values.namespace ?? `parley-test-${randomBytes(3).toString("hex")}`;
  if (!/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace))
    throw new CannotRun(`${namespace} is not a name of a namespace: lower-case letters, digits and hyphens`);
  return {
    context,
    namespace,
    images: new Map((values.image ?? []).map(imageOf)),
    phases: chosen,
    scenes: scenesOf(values.scenes),
    rate: positive("--rate", values.rate),
    durationSeconds: positive("--duration-seconds", values["duration-seconds"]),
    keep: values.keep === true,
    publicAddress: addressOf(values["public-address"]),
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        context: { type: "string" },
        namespace: { type: "string" },
        image: { type: "string", multiple: true },
        phases: { type: "string" },
        scenes: { type: "string" },
        rate: { type: "string", default: "20" },
        "duration-seconds": { type: "string", default: "60" },
        keep: { type: "boolean" },
        "public-address": { type: "string" },
      },
    });
  } catch (error) {
    throw new CannotRun(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  }
}

function imageOf(text: string): [string, string] {
  const [, name, image] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || image === undefined)
    throw new CannotRun(`--image ${text}: expected NAME=IMAGE, such as parley/store=registry.example.com/store:1`);
  return [name, image];
}

function scenesOf(text: string | undefined): LoadScene[] {
  try {
    return chooseScenes(text?.split(",") ?? []);
  } catch (error) {
    throw new CannotRun(error instanceof Error ? error.message : String(error));
  }
}

function positive(name: string, text: string): number {
  const number = Number(text);
  if (!(number > 0 && Number.isFinite(number))) throw new CannotRun(`${name} ${text}: expected a number above 0`);
  return number;
}

function addressOf(text: string | undefined): ClusterOptions["publicAddress"] {
  if (text === undefined) return null;
  const [, host, port] = /^(.+):(\d+)$/.exec(text) ?? [];
  if (host === undefined) throw new CannotRun(`--public-address ${text}: expected HOST:PORT`);
  return { host, port: Number(port) };
}
