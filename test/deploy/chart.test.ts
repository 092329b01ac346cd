// The Helm chart: it is generated from the kustomize files, renders the same objects, and refuses wrong values.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { Cleanup, temporaryFolder } from "@parley/testing";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

import { chartFiles } from "../../infra/charts/chart.ts";
import { kubernetesTools, type KubernetesTools } from "./support/kubernetes-tools.ts";
import { read, root, version } from "./support/repository.ts";

const chart = join(root, "charts/parley");

test("is current: `npm run docs` generates it from the kustomize files", () => {
  const files = chartFiles(read, version);
  for (const [path, text] of files) assert.equal(read(`charts/parley/${path}`), text, path);
  const written = new Set([...files.keys(), "values.yaml", "values.schema.json"]);
  for (const path of globSync("**/*.*", { cwd: chart })) assert.ok(written.has(path.replaceAll("\\", "/")), path);
});

const tools = await kubernetesTools();
const skip = tools === undefined ? "helm and kubectl are not available" : false;

/** An object of Kubernetes without what the forms name differently: the hash in the name of a ConfigMap, the order of variables. */
type Rendered = Record<string, unknown>;

const Named = z.looseObject({ kind: z.string(), metadata: z.looseObject({ name: z.string() }) });

function objectsIn(text: string): Map<string, Rendered> {
  const objects = new Map<string, Rendered>();
  for (const document of parseAllDocuments(text.replaceAll(/\b(parley-config|deletion-cost)-[a-z0-9]{10}\b/g, "$1"))) {
    const object = sorted(document.toJS());
    if (object === null) continue;
    const { kind, metadata } = Named.parse(object);
    const name = `${kind} ${metadata.name}`;
    assert.ok(!objects.has(name), `${name} twice`);
    objects.set(name, object as Rendered);
  }
  return objects;
}

/** Variables of containers by name: a component of kustomize adds its own in front. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key !== "env") return [key, sorted(inner)];
      const variables = z.array(z.looseObject({ name: z.string() })).parse(inner);
      return [key, variables.toSorted((a, b) => a.name.localeCompare(b.name))];
    }),
  );
}

describe("renders the same objects as kustomize", { skip }, () => {
  const cleanup = new Cleanup();
  let folder: string;
  let programs: KubernetesTools;
  before(async () => {
    programs = tools ?? assert.fail("skipped");
    folder = await temporaryFolder(cleanup);
    for (const part of ["k8s", "infra"]) cpSync(join(root, part), join(folder, part), { recursive: true });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const kustomize = (overlay: object): string => {
    const place = join(folder, "k8s/overlays/test");
    mkdirSync(place, { recursive: true });
    for (const file of ["ingress.yaml", "hosts.yaml"]) cpSync(join(root, "k8s/overlays/prod", file), join(place, file));
    const kustomization = { apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization", ...overlay };
    writeFileSync(join(place, "kustomization.yaml"), JSON.stringify(kustomization));
    return execFileSync(programs.kubectl, ["kustomize", place], { encoding: "utf8", maxBuffer: 64e6 });
  };
  const helm = (...values: string[]): string =>
    execFileSync(programs.helm, ["template", "parley", chart, ...values.flatMap((each) => ["--set", each])], {
      encoding: "utf8",
      maxBuffer: 64e6,
    });

  const cases: Record<string, { overlay: object; values: string[] }> = {
    "by default": { overlay: {}, values: [] },
    "with autoscaling": { overlay: { components: ["../../components/hpa"] }, values: ["autoscaling.enabled=true"] },
    "with the internet for tools": { overlay: { components: ["../../components/web"] }, values: ["web.enabled=true"] },
    "with Prometheus": {
      overlay: { components: ["../../components/prometheus"] },
      values: ["prometheus.enabled=true"],
    },
    "with KEDA": { overlay: { components: ["../../components/keda"] }, values: ["keda.enabled=true"] },
    "with deletion costs": {
      overlay: { components: ["../../components/deletion-cost"] },
      values: ["deletionCost.enabled=true"],
    },
    "with traces": {
      overlay: { components: ["../../components/otel"] },
      values: ["otel.enabled=true"],
    },
    "with other places of names": {
      overlay: { components: ["../../components/node-local-dns", "../../components/openshift-dns"] },
      values: ["dns.nodeLocal=true", "dns.openshift=true"],
    },
    "with all of them, an ingress and other images": {
      overlay: {
        components: ["hpa", "deletion-cost", "web", "prometheus", "otel", "external-secrets", "backup", "gvisor"].map(
          (name) => `../../components/${name}`,
        ),
        resources: ["../../base", "ingress.yaml"],
        images: ["migrate", "store", "agent-core", "tool-runner", "channel-gateway"].map((name) => ({
          name: `parley/${name}`,
          newName: `registry.example.com/x/${name}`,
        })),
        replicas: [{ name: "store", count: 3 }],
        patches: [
          {
            target: { kind: "PersistentVolumeClaim", name: "parley-workspace" },
            patch: JSON.stringify([{ op: "add", path: "/spec/storageClassName", value: "shared-files" }]),
          },
          { path: "hosts.yaml" },
        ],
      },
      values: [
        "autoscaling.enabled=true",
        "deletionCost.enabled=true",
        "web.enabled=true",
        "prometheus.enabled=true",
        "otel.enabled=true",
        "externalSecrets.enabled=true",
        "backup.enabled=true",
        "gvisor.enabled=true",
        "ingress.enabled=true",
        "image.registry=registry.example.com/x",
        "replicas.store=3",
        "workspace.storageClass=shared-files",
      ],
    },
  };
  for (const [name, { overlay, values }] of Object.entries(cases)) {
    test(name, () => {
      const wanted = objectsIn(kustomize({ resources: ["../../base"], ...overlay }));
      const found = objectsIn(helm(...values));
      assert.ok(wanted.size >= 25, `${wanted.size} objects`);
      assert.deepEqual([...found.keys()].sort(), [...wanted.keys()].sort());
      for (const [object, text] of wanted) assert.deepEqual(found.get(object), text, object);
    });
  }

  test("gives the settings another name when they change, so that pods restart", () => {
    const nameIn = (text: string) => /name: (parley-config-[a-z0-9]{10})\n/.exec(text)?.[1];
    const [first, other] = [nameIn(helm()), nameIn(helm("settings=[queue]"))];
    assert.ok(first !== undefined && other !== undefined && first !== other);
    assert.equal(nameIn(helm()), first);
  });

  test("admits requests under the host name of the ingress", () => {
    const hostsIn = (text: string) => /name: PARLEY_ALLOWED_HOSTS\n +value: (".*")\n/.exec(text)?.[1];
    const ingress = ["ingress.enabled=true", "ingress.host=agent.example.org"];
    assert.equal(hostsIn(helm(...ingress)), '"channel-gateway,agent.example.org"');
    assert.equal(hostsIn(helm("allowedHosts=", ...ingress)), '"agent.example.org"');
    assert.equal(hostsIn(helm()), '"channel-gateway"');
  });

  test("refuses unknown values, wrong types and unsupported choices, and names the value", () => {
    const refusals: Record<string, RegExp> = {
      "replica.store=3": /'replica' not allowed/,
      "replicas.store=many": /'\/replicas\/store': got string, want integer/,
      "replicas.store=0": /'\/replicas\/store': minimum: got 0, want 1/,
      "image.tag=Latest!": /'\/image\/tag': 'Latest!' does not match/,
      "image.tag=1.0-": /'\/image\/tag': '1.0-' does not match/,
      "image.registry=https://registry.example.com/x": /'\/image\/registry': .* does not match/,
      "image.pullPolicy=Sometimes": /'\/image\/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'/,
      "web.execIsolation=off": /'\/web\/execIsolation': value must be one of/,
      "workspace.accessMode=ReadOnlyMany": /'\/workspace\/accessMode': value must be one of/,
      "workspace.storageClass=Fast_SSD": /'\/workspace\/storageClass': 'Fast_SSD' does not match/,
      "autoscaling=true": /'\/autoscaling': got boolean, want object/,
      "otel.endpoint=collector:4318": /'\/otel\/endpoint': 'collector:4318' does not match/,
      "allowedHosts=https://parley.example.com": /'\/allowedHosts': .* does not match/,
      "ingress.host=https://parley.example.com": /'\/ingress\/host': .* does not match/,
      "ingress.tlsSecret=TLS": /'\/ingress\/tlsSecret': 'TLS' does not match/,
      "autoscaling.enabled=true,keda.enabled=true": /scale the same pods: set one of them to false/,
    };
    for (const [wrong, message] of Object.entries(refusals)) {
      const { status, stderr } = spawnSync(programs.helm, ["template", chart, "--set", wrong], { encoding: "utf8" });
      assert.notEqual(status, 0, wrong);
      assert.match(stderr, message, wrong);
    }
  });

  test("accepts several host names, any host, and a registry with a port", () => {
    for (const value of [
      "allowedHosts=a.example.com\\, b.example.com",
      "allowedHosts=*",
      "image.registry=localhost:5000/x",
    ])
      helm(value);
  });

  test("passes helm's own checks", () => {
    const said = execFileSync(programs.helm, ["lint", "--strict", chart], { encoding: "utf8" });
    assert.match(said, /0 chart\(s\) failed/);
  });
});
