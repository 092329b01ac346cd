// The Kubernetes manifests as data, with the parts of their schema that the tests read.

import { globSync } from "node:fs";

import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";

import { read, root } from "./repository.ts";

const labels = z.record(z.string(), z.string());
const Selector = z.looseObject({ matchLabels: labels });

const Items = z.array(z.looseObject({ key: z.string(), path: z.string() }));

const Probe = z.looseObject({
  httpGet: z.looseObject({ path: z.string(), port: z.union([z.string(), z.number()]) }).optional(),
});

const Container = z.looseObject({
  name: z.string(),
  image: z.string(),
  env: z
    .array(
      z.looseObject({
        name: z.string(),
        value: z.string().optional(),
        valueFrom: z
          .looseObject({
            secretKeyRef: z
              .looseObject({ name: z.string(), key: z.string(), optional: z.boolean().optional() })
              .optional(),
            fieldRef: z.looseObject({ fieldPath: z.string() }).optional(),
          })
          .optional(),
      }),
    )
    .default([]),
  envFrom: z
    .array(
      z.looseObject({
        secretRef: z.looseObject({ name: z.string(), optional: z.boolean().optional() }).optional(),
      }),
    )
    .default([]),
  ports: z.array(z.looseObject({ name: z.string(), containerPort: z.number() })).default([]),
  startupProbe: Probe.optional(),
  readinessProbe: Probe.optional(),
  livenessProbe: Probe.optional(),
  lifecycle: z
    .looseObject({ preStop: z.looseObject({ sleep: z.looseObject({ seconds: z.number() }) }).optional() })
    .optional(),
  resources: z.looseObject({ requests: labels, limits: labels }),
  securityContext: z.unknown(),
  command: z.array(z.string()).default([]),
  volumeMounts: z
    .array(z.looseObject({ name: z.string(), mountPath: z.string(), subPath: z.string().optional() }))
    .default([]),
});

const PodTemplate = z.looseObject({
  metadata: z.looseObject({ labels }),
  spec: z.looseObject({
    serviceAccountName: z.string(),
    automountServiceAccountToken: z.boolean().optional(),
    terminationGracePeriodSeconds: z.number().optional(),
    securityContext: z.unknown(),
    topologySpreadConstraints: z.array(z.looseObject({ labelSelector: Selector })).default([]),
    initContainers: z.array(Container).default([]),
    containers: z.array(Container),
    volumes: z
      .array(
        z.looseObject({
          name: z.string(),
          secret: z
            .looseObject({ secretName: z.string(), optional: z.boolean().optional(), items: Items.default([]) })
            .optional(),
          projected: z
            .looseObject({
              defaultMode: z.number(),
              sources: z.array(
                z.looseObject({
                  secret: z.looseObject({
                    name: z.string(),
                    optional: z.boolean().optional(),
                    items: Items.optional(),
                  }),
                }),
              ),
            })
            .optional(),
        }),
      )
      .default([]),
  }),
});

const Workload = z.looseObject({
  kind: z.enum(["Deployment", "StatefulSet", "Job"]),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({ replicas: z.number().optional(), selector: Selector.optional(), template: PodTemplate }),
});

const Manifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: labels.optional() }),
  spec: z.unknown().optional(),
});

export type Workload = z.infer<typeof Workload>;
export type Manifest = z.infer<typeof Manifest> & { file: string };

const Kustomization = z.looseObject({
  kind: z.enum(["Kustomization", "Component"]),
  resources: z.array(z.string()).default([]),
});

/** Every YAML file of k8s/; throws when a file is not valid YAML. */
export function parseFile(path: string): unknown[] {
  return parseAllDocuments(read(path)).map((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    return document.toJS() as unknown;
  });
}

export const yamlFiles = globSync("k8s/**/*.yaml", { cwd: root }).sort();
export const kustomizationFiles = yamlFiles.filter((file) => file.endsWith("kustomization.yaml"));

/** The objects that `folder` itself defines, without patches. */
export function manifestsIn(folder: string): Manifest[] {
  return kustomization(`${folder}/kustomization.yaml`)
    .resources.filter((resource) => resource.endsWith(".yaml"))
    .flatMap((resource) =>
      parseFile(`${folder}/${resource}`).map((each) => ({ ...Manifest.parse(each), file: resource })),
    );
}

export function kustomization(path: string): z.infer<typeof Kustomization> {
  return Kustomization.parse(parse(read(path)));
}

export function workloads(manifests: readonly Manifest[]): Workload[] {
  return manifests
    .filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet" || kind === "Job")
    .map((manifest) => Workload.parse(manifest));
}

/** A value inside a manifest; undefined where the path does not exist. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null ? (inner as Record<string | number, unknown>)[key] : undefined,
    value,
  );
}

/** The keys of secrets that pods mount as files: `<secret>/<key>`. */
export function mountedSecrets(manifests: readonly Manifest[]): string[] {
  return workloads(manifests).flatMap((each) =>
    mountedFiles(each).flatMap(({ secret, key }) => (key === "" ? [] : `${secret}/${key}`)),
  );
}

export interface MountedFile {
  volume: string;
  secret: string;
  /** Empty: all keys of the secret, each with its own name. */
  key: string;
  path: string;
  optional: boolean;
}

/** The files of secrets that a pod mounts. */
export function mountedFiles({ spec }: Workload): MountedFile[] {
  return spec.template.spec.volumes.flatMap(({ name: volume, secret, projected }) => {
    const sources = projected?.sources.map((source) => source.secret) ?? [];
    if (secret !== undefined) sources.push({ ...secret, name: secret.secretName });
    return sources.flatMap(({ name, optional = false, items = [{ key: "", path: "" }] }) =>
      items.map(({ key, path }) => ({ volume, secret: name, key, path, optional })),
    );
  });
}

const ScaledObject = z.looseObject({
  spec: z.looseObject({
    triggers: z.array(z.looseObject({ name: z.string(), metadata: z.record(z.string(), z.string()) })),
  }),
});

/** The queries of the component `keda` by the names of their triggers. */
export function scalingQueries(): Record<string, string> {
  const triggers = parseFile("k8s/components/keda/scaled-objects.yaml").flatMap(
    (each) => ScaledObject.parse(each).spec.triggers,
  );
  return Object.fromEntries(triggers.map(({ name, metadata }) => [name, metadata["query"] ?? ""]));
}
