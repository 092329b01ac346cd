// The dev overlay as the suite applies it: in a namespace of its own, with other images where wanted, and with what the scenes need.
// Pure: objects of kubectl and of make-secrets.mjs in, objects to apply out.
import { services } from "@parley/contracts";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

export const overlay = "k8s/overlays/dev";
const overlayNamespace = "parley-dev";
const nameLabel = "app.kubernetes.io/name";

/** The settings of test/chaos/load: a session for each conversation, whose messages wait for each other. */
const settings = `[session]
policy = "per_conversation"
[queue]
mode = "queue"
`;

const Labels = z.record(z.string(), z.string());
const KubernetesObject = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional(), labels: Labels.optional() }),
});
export type KubernetesObject = z.infer<typeof KubernetesObject>;

const Container = z.looseObject({ name: z.string(), image: z.string() });
type Container = z.infer<typeof Container>;
const Workload = z.looseObject({
  spec: z.looseObject({
    template: z.looseObject({
      metadata: z.looseObject({ labels: Labels }),
      spec: z.looseObject({ containers: z.array(Container), initContainers: z.array(Container).optional() }),
    }),
  }),
});

export interface Placement {
  namespace: string;
  images: ReadonlyMap<string, string>;
}

export interface Deployed {
  namespace: KubernetesObject;
  secrets: KubernetesObject[];
  rest: KubernetesObject[];
}

const linkedServices: ReadonlySet<string> = new Set(services);
/** Where the service in a pod reaches NATS: the container `link` of the same pod forwards, until a scene stops it. */
const linkUrl = "nats://127.0.0.1:4222";

/** Throws when a manifest is not as the suite expects, and when an image of `images` replaces nothing. */
export function deployed(rendered: string, secretList: string, { namespace, images }: Placement): Deployed {
  const objects = parseAllDocuments(rendered).map((document) => KubernetesObject.parse(document.toJS()));
  const secrets = z.object({ items: z.array(KubernetesObject) }).parse(JSON.parse(secretList)).items;
  const used = new Set<string>();
  const placed = objects
    .filter(({ kind }) => kind !== "Namespace")
    .map((object) => {
      if (object.metadata.namespace !== overlayNamespace)
        throw new Error(
          `${object.kind} ${object.metadata.name} is in no namespace, so it could be left in the cluster`,
        );
      return withImages(changed(moved(object, namespace)), images, used);
    });
  for (const name of images.keys())
    if (!used.has(name)) throw new Error(`no container of ${overlay} has the image ${name}`);
  const own = objects.find(({ kind }) => kind === "Namespace");
  if (own === undefined) throw new Error(`${overlay} has no Namespace`);
  return {
    namespace: { ...own, metadata: { ...own.metadata, name: namespace } },
    secrets: secrets.map((secret) => linked(moved(secret, namespace))),
    rest: placed,
  };
}

function moved(object: KubernetesObject, namespace: string): KubernetesObject {
  return { ...object, metadata: { ...object.metadata, namespace } };
}

/** A secret whose service connects to NATS through its own pod. */
function linked(secret: KubernetesObject): KubernetesObject {
  const data = Labels.parse(secret["stringData"]);
  if (data["nats-url"] === undefined) return secret;
  return { ...secret, stringData: { ...data, "nats-url": linkUrl } };
}

function changed(object: KubernetesObject): KubernetesObject {
  const { name } = object.metadata;
  if (object.kind === "ConfigMap" && name.startsWith("parley-config"))
    return { ...object, data: { "parley.toml": settings } };
  // The invariants compare the commit time of rows with that of takeovers.
  if (object.kind === "StatefulSet" && name === "postgres")
    return withPod(object, (pod) => ({
      ...pod,
      containers: pod.containers.map((each) => ({ ...each, args: ["-c", "track_commit_timestamp=on"] })),
    }));
  if (object.kind === "Deployment" && linkedServices.has(name)) return withPod(object, withLink);
  return object;
}

type Pod = z.infer<typeof Workload>["spec"]["template"]["spec"];

function withPod(object: KubernetesObject, change: (pod: Pod) => Pod): KubernetesObject {
  const { spec } = Workload.parse(object);
  return { ...object, spec: { ...spec, template: { ...spec.template, spec: change(spec.template.spec) } } };
}

/**
 * A pod whose connection to NATS a scene can cut by stopping the process of the container `link`: its connections stay open and carry
 * nothing. The processes of the pod see each other, because no process can kill the first one of its own container.
 */
function withLink(pod: Pod): Pod {
  const [service] = pod.containers;
  if (service === undefined) throw new Error("a pod without a container");
  const link: Container = {
    name: "link",
    image: service.image,
    imagePullPolicy: service["imagePullPolicy"],
    // Starts before the service and ends after it.
    restartPolicy: "Always",
    command: ["node", "--eval", linkProgram],
    resources: { requests: { cpu: "10m", memory: "48Mi" }, limits: { memory: "128Mi" } },
    securityContext: service["securityContext"],
  };
  return { ...pod, shareProcessNamespace: true, initContainers: [...(pod.initContainers ?? []), link] };
}

/** Recognised by scenes by this word in its command line. */
export const linkMark = "parley-test-link";
const linkProgram = `// ${linkMark}
const net = require("node:net");
net.createServer((near) => {
  const far = net.connect(4222, "nats");
  for (const [from, to] of [[near, far], [far, near]]) from.on("error", () => to.destroy()).on("close", () => to.destroy()).pipe(to);
}).listen(4222, "127.0.0.1");
`;

function withImages(
  object: KubernetesObject,
  images: ReadonlyMap<string, string>,
  used: Set<string>,
): KubernetesObject {
  const parsed = Workload.safeParse(object);
  if (!parsed.success) return object;
  const replace = (container: Container): Container => {
    // The tag or digest of an image; a port of a registry is followed by a path.
    const name = container.image.replace(/(?:@.*|:[^/]*)$/, "");
    const image = images.get(name);
    if (image === undefined) return container;
    used.add(name);
    return { ...container, image };
  };
  return withPod(object, (pod) => ({
    ...pod,
    containers: pod.containers.map(replace),
    ...(pod.initContainers === undefined ? {} : { initContainers: pod.initContainers.map(replace) }),
  }));
}

/** A pod that does nothing, from which connections are tried: with the label of the migration, or with none of Parley. */
export function probePod(name: string, app: string | null, image: string, namespace: string): KubernetesObject {
  const security = {
    runAsNonRoot: true,
    runAsUser: 10001,
    runAsGroup: 10001,
    seccompProfile: { type: "RuntimeDefault" },
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      labels: app === null ? { role: name } : { [nameLabel]: app, "app.kubernetes.io/part-of": "parley" },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 0,
      securityContext: security,
      containers: [
        {
          name: "probe",
          image,
          imagePullPolicy: "IfNotPresent",
          command: ["node", "--eval", "setInterval(() => {}, 1e9)"],
          resources: { requests: { cpu: "10m", memory: "48Mi" }, limits: { memory: "128Mi" } },
          securityContext: {
            runAsNonRoot: true,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        },
      ],
    },
  };
}

/** The image of a container of a deployment, as it is applied. */
export function imageOf(objects: readonly KubernetesObject[], deployment: string): string {
  const found = objects.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === deployment);
  const image = Workload.parse(found).spec.template.spec.containers[0]?.image;
  if (image === undefined) throw new Error(`no deployment ${deployment}`);
  return image;
}

/** A secret's value, as it is applied. */
export function secretValue(secrets: readonly KubernetesObject[], name: string, key: string): string {
  const found = secrets.find(({ metadata }) => metadata.name === name);
  const value = Labels.parse(found?.["stringData"])[key];
  if (value === undefined) throw new Error(`no ${key} in the secret ${name}`);
  return value;
}
