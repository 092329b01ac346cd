// The optional parts of the manifests match the base: targets, secrets, metrics and variables.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";

import { metricCatalog } from "@parley/chassis";
import { services } from "@parley/contracts";
import { z } from "zod";

import {
  at,
  kustomization,
  manifestsIn,
  mountedFiles,
  parseFile,
  scalingQueries,
  workloads,
} from "./support/manifests.ts";
import { read, root } from "./support/repository.ts";

const inBase = workloads(manifestsIn("k8s/base"));
const scaled = ["channel-gateway", "tool-runner"];
const patchesOf = (component: string) =>
  z
    .array(z.object({ target: z.object({ kind: z.string(), name: z.string() }), patch: z.string() }))
    .parse(at(parseFile(`k8s/components/${component}/kustomization.yaml`)[0], "patches"));

describe("autoscaling", () => {
  test("is in no base: every Deployment has its replicas there", () => {
    for (const { kind } of manifestsIn("k8s/base")) assert.notEqual(kind, "HorizontalPodAutoscaler");
    for (const { kind, metadata, spec } of inBase)
      if (kind === "Deployment") assert.equal(spec.replicas, 2, metadata.name);
  });

  for (const [component, file] of [
    ["hpa", "autoscalers.yaml"],
    ["keda", "scaled-objects.yaml"],
  ] as const) {
    test(`${component} scales gateways and tool-runners, at least two of each, and leaves their number alone`, () => {
      const objects = parseFile(`k8s/components/${component}/${file}`);
      assert.deepEqual(objects.map((each) => String(at(each, "spec", "scaleTargetRef", "name"))).toSorted(), scaled);
      for (const each of objects)
        assert.equal(at(each, "spec", component === "hpa" ? "minReplicas" : "minReplicaCount"), 2);
      const [patch] = patchesOf(component);
      assert.deepEqual(patch?.target.name.split("|").toSorted(), scaled);
      assert.match(patch.patch, /op: remove\n\s*path: \/spec\/replicas/);
    });
  }

  test("keda asks only for metrics of the catalog, and takes an empty result for an error", () => {
    for (const query of Object.values(scalingQueries())) {
      const names = [...query.matchAll(/parley_\w+/g)].map(([name]) => name);
      assert.ok(names.length > 0);
      for (const name of names) assert.ok(name in metricCatalog, name);
    }
    for (const object of parseFile("k8s/components/keda/scaled-objects.yaml")) {
      const triggers = z.array(z.looseObject({ metadata: z.unknown() })).parse(at(object, "spec", "triggers"));
      // By default KEDA takes it for 0, and would remove replicas while Prometheus does not reach them.
      for (const { metadata } of triggers) assert.equal(at(metadata, "ignoreNullValues"), "false");
      assert.equal(at(object, "spec", "fallback", "behavior"), "currentReplicasIfHigher");
    }
  });

  test("spares background commands: one replica for each runner that has some, and the idle ones removed first", () => {
    const [runner] = parseFile("k8s/components/keda/scaled-objects.yaml");
    const triggers = z
      .array(z.looseObject({ name: z.string(), metadata: z.looseObject({ threshold: z.string() }) }))
      .parse(at(runner, "spec", "triggers"));
    assert.equal(triggers.find(({ name }) => name === "runners-with-commands")?.metadata.threshold, "1");
    assert.match(scalingQueries()["runners-with-commands"] ?? "", /^count\(parley_background_commands > 0\) or /);
    const prod = kustomization("k8s/overlays/prod/kustomization.yaml");
    assert.ok(z.array(z.string()).parse(at(prod, "components")).includes("../../components/deletion-cost"));
  });

  test("is used by the prod overlay once", () => {
    const { components = [] } = z
      .looseObject({ components: z.array(z.string()).optional() })
      .parse(kustomization("k8s/overlays/prod/kustomization.yaml"));
    assert.deepEqual(
      components.filter((path) => /hpa|keda/.test(path)),
      ["../../components/hpa"],
    );
  });
});

test("external-secrets creates every required secret of the base with its keys", () => {
  const made = parseFile("k8s/components/external-secrets/secrets.yaml").flatMap((each) => {
    const name = z.string().parse(at(each, "spec", "target", "name"));
    const data = z.array(z.object({ secretKey: z.string() })).parse(at(each, "spec", "data"));
    return data.map(({ secretKey }) => `${name}/${secretKey}`);
  });
  const variables = inBase.flatMap(({ spec }) =>
    spec.template.spec.containers.flatMap(({ env }) => env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? [])),
  );
  const files = inBase.flatMap(mountedFiles).map((file) => ({ ...file, name: file.secret }));
  const wanted = [...variables, ...files].filter(({ optional }) => optional !== true);
  // The login to NATS is optional in the base: the URL may contain one.
  const seeds = services.map((service) => `parley-${service}/nats-seed`);
  assert.deepEqual(
    made.toSorted(),
    [...new Set([...seeds, ...wanted.map(({ name, key }) => `${name}/${key}`)])].toSorted(),
  );
});

test("backup runs the store's program as the owner of the schema, restricted like the other pods", () => {
  const [job, claim] = parseFile("k8s/components/backup/backup.yaml");
  const pod = at(job, "spec", "jobTemplate", "spec", "template", "spec");
  const migration = inBase.find(({ kind }) => kind === "Job");
  const own = migration?.spec.template.spec;
  assert.equal(at(pod, "containers", 0, "image"), own?.containers[0]?.image);
  assert.equal(at(pod, "serviceAccountName"), own?.serviceAccountName);
  assert.deepEqual(at(pod, "containers", 0, "securityContext"), own?.containers[0]?.securityContext);
  assert.match(String(at(pod, "containers", 0, "command", 2)), /node dist\/backup\.js "\/backups\//);
  const variables = z.array(z.object({ name: z.string() })).parse(at(pod, "containers", 0, "env"));
  const program = read("services/store/src/config.ts") + read("packages/chassis/src/secrets-folder.ts");
  for (const { name } of variables) assert.ok(program.includes(name), name);
  assert.equal(at(claim, "metadata", "name"), "parley-backups");
});

test("otel gives every service the collector and the way to it", () => {
  const [patch] = patchesOf("otel");
  assert.deepEqual(patch?.target.name.split("|").toSorted(), services.toSorted());
  assert.match(patch.patch, /name: OTEL_EXPORTER_OTLP_ENDPOINT/);
  assert.ok(read("packages/chassis/src/config.ts").includes("OTEL_EXPORTER_OTLP_ENDPOINT"));
  const [policy] = parseFile("k8s/components/otel/network-policy.yaml");
  assert.deepEqual(at(policy, "spec", "policyTypes"), ["Egress"]);
  const port = /:(\d+)\n/.exec(patch.patch)?.[1];
  assert.equal(String(at(policy, "spec", "egress", 0, "ports", 0, "port")), port);
});

test("SECURITY.md names existing tests in each row of the threat model", () => {
  const page = read("SECURITY.md");
  const rows = [...page.matchAll(/^\| (ASI\d\d) /gm)].map((match) => match[1]);
  assert.deepEqual(
    rows,
    Array.from({ length: 10 }, (_, index) => `ASI${String(index + 1).padStart(2, "0")}`),
  );
  for (const line of page.split("\n").filter((each) => each.startsWith("| ASI"))) {
    const paths = [...line.matchAll(/`((?:test|services|packages)\/[^`]+)`/g)].map((match) => match[1] ?? "");
    assert.ok(paths.length > 0, line);
    for (const path of paths) assert.ok(existsSync(join(root, path)), path);
  }
});
