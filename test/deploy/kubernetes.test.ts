// The manifests match the code's probes, variables and drain time, and the owner of each server. No cluster is needed.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";

import { parseSettings } from "@parley/chassis";
import { channelPorts, services } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { parse } from "yaml";
import { z } from "zod";

import {
  at,
  kustomization,
  kustomizationFiles,
  manifestsIn,
  mountedFiles,
  mountedSecrets,
  parseFile,
  type Workload,
  workloads,
  yamlFiles,
} from "./support/manifests.ts";
import { kubernetesTools } from "./support/kubernetes-tools.ts";
import { healthPaths, isService, read, root, secretVariables, variablesOf, version } from "./support/repository.ts";

const base = manifestsIn("k8s/base");
const dev = manifestsIn("k8s/overlays/dev");
const prod = manifestsIn("k8s/overlays/prod");
const deployed = workloads([...base, ...dev, ...prod]);
const inBase = workloads(base);
const ours = inBase.filter(({ metadata }) => isService(metadata.name));

const nameLabel = "app.kubernetes.io/name";
const partLabel = "app.kubernetes.io/part-of";

const serviceOf = ({ metadata }: Workload): string => metadata.name.replace(/^migrate-.*/, "migrate");

const text = (value: unknown): string => z.string().parse(value);

test("contains valid YAML in which every object has its name and labels", () => {
  for (const file of yamlFiles) assert.doesNotThrow(() => parseFile(file), file);
  for (const { kind, metadata, file } of [...base, ...dev, ...prod]) {
    assert.equal(metadata.labels?.[partLabel], "parley", `${file}: ${kind} ${metadata.name}`);
  }
});

test("lists only existing resources, and every manifest is a resource or a patch", () => {
  for (const file of kustomizationFiles) {
    const folder = file.slice(0, file.lastIndexOf("/"));
    for (const resource of kustomization(file).resources) assert.ok(existsSync(join(root, folder, resource)), resource);
    for (const path of yamlFiles.filter((each) => each.startsWith(`${folder}/`) && each !== file)) {
      const name = path.slice(folder.length + 1);
      assert.ok(
        read(file).includes(`- ${name}`) || read(file).includes(`path: ${name}`),
        `${path} is in no kustomization`,
      );
    }
  }
});

test("has one Deployment for each service, and a migration Job named after the version", () => {
  assert.deepEqual(
    ours.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(),
    services.map((name) => `Deployment ${name}`).sort(),
  );
  const jobs = inBase.filter(({ kind }) => kind === "Job").map(({ metadata }) => metadata.name);
  assert.deepEqual(jobs, [`migrate-${version.replaceAll(".", "-")}`]);
});

test("removes a finished migration, and gives it longer than an outage of PostgreSQL", () => {
  const job = base.find(({ kind }) => kind === "Job");
  assert.ok(Number(at(job?.spec, "ttlSecondsAfterFinished")) > 0);
  assert.ok(Number(at(job?.spec, "activeDeadlineSeconds")) >= 86_400);
  assert.match(read("Dockerfile"), /^CMD \["node", "dist\/migrate\.js", "--wait"\]$/m);
});

describe("the folders of the shared volume", () => {
  const runner = ours.find(({ metadata }) => metadata.name === "tool-runner")?.spec.template.spec;
  const [init] = runner?.initContainers ?? [];
  const mount = init?.volumeMounts.find(({ name }) => name === "workspace");
  const folders = (runner?.containers[0]?.volumeMounts ?? []).flatMap(({ subPath }) => subPath ?? []);
  const run = (volume: string) => {
    const [, ...args] = init?.command ?? [];
    return spawnSync(process.execPath, args, { cwd: volume, encoding: "utf8" });
  };

  test("are created by the pod's user before kubelet would create them as root", () => {
    assert.deepEqual([mount?.subPath, at(init, "workingDir"), init?.command[0]], [undefined, mount?.mountPath, "node"]);
    const volume = mkdtempSync(join(tmpdir(), "parley-volume-"));
    try {
      assert.equal(run(volume).status, 0);
      assert.deepEqual(readdirSync(volume).sort(), folders.toSorted());
      assert.equal(run(volume).status, 0, "again");
    } finally {
      rmSync(volume, { recursive: true });
    }
  });

  test("are named with the user and the remedy when they cannot be created", () => {
    // Below a device nothing can be created, not even by root.
    const file = join(mkdtempSync(join(tmpdir(), "parley-volume-")), "volume");
    mkdirSync(file);
    writeFileSync(join(file, folders[0] ?? ""), "");
    const { status, stderr } = run(file);
    rmSync(file, { recursive: true });
    assert.equal(status, 1);
    assert.match(stderr, new RegExp(`^cannot create the folder ${folders[0]} .* as user \\d+ \\(EEXIST\\): make user`));
  });
});

test("tags images with the version of package.json", () => {
  for (const { spec } of inBase) {
    for (const { name, image } of spec.template.spec.containers) assert.equal(image, `parley/${name}:${version}`);
  }
});

describe("selectors", () => {
  test("select the pods of their workload and spread them", () => {
    for (const { metadata, spec } of deployed) {
      const { labels } = spec.template.metadata;
      for (const selector of [
        spec.selector,
        ...spec.template.spec.topologySpreadConstraints.map((each) => each.labelSelector),
      ]) {
        for (const [key, value] of Object.entries(selector?.matchLabels ?? {}))
          assert.equal(labels[key], value, metadata.name);
      }
    }
  });

  test("match existing pods in Services, budgets and policies", () => {
    const pods = deployed.map(({ spec }) => spec.template.metadata.labels);
    const selects = (value: unknown, what: string) => {
      const wanted = Object.entries(z.record(z.string(), z.string()).parse(value));
      assert.ok(
        pods.some((labels) => wanted.every(([key, expected]) => labels[key] === expected)),
        what,
      );
    };
    for (const { kind, metadata, spec } of [...base, ...dev]) {
      const what = `${kind} ${metadata.name}`;
      if (kind === "Service") selects(at(spec, "selector"), what);
      if (kind === "PodDisruptionBudget") selects(at(spec, "selector", "matchLabels"), what);
      if (kind === "NetworkPolicy") selects(at(spec, "podSelector", "matchLabels"), what);
    }
  });

  test("name ports of the pods in Services", () => {
    for (const { metadata, spec } of [...base, ...dev].filter(({ kind }) => kind === "Service")) {
      const pod = deployed.find((each) => each.metadata.name === metadata.name);
      const ports =
        pod?.spec.template.spec.containers.flatMap((container) => container.ports.map(({ name }) => name)) ?? [];
      assert.ok(ports.includes(String(at(spec, "ports", 0, "targetPort"))), metadata.name);
    }
  });
});

describe("a service's pod", () => {
  for (const { metadata, spec } of ours) {
    const service = metadata.name;
    if (!isService(service)) continue;
    const [container] = spec.template.spec.containers;
    assert.ok(container !== undefined);

    test(`${service}: has three probes that request the health listener on its port`, () => {
      const expected = { startupProbe: "/livez", readinessProbe: "/readyz", livenessProbe: "/livez" };
      for (const [probe, path] of Object.entries(expected)) {
        assert.equal(at(container, probe, "httpGet", "path"), path);
        assert.equal(at(container, probe, "httpGet", "port"), "health");
        assert.ok(healthPaths.includes(path), `${path} is not in packages/chassis/src/health.ts`);
      }
      const port = /PARLEY_HEALTH_PORT=(\d+)/.exec(read("Dockerfile"))?.[1];
      assert.equal(String(container.ports.find(({ name }) => name === "health")?.containerPort), port);
    });

    test(`${service}: sets only variables that its code reads`, () => {
      const known = variablesOf(service);
      for (const { name } of container.env) assert.ok(known.includes(name), `${name} is in no config.ts of ${service}`);
    });

    test(`${service}: names the replica after the pod`, () => {
      const replica = container.env.find(({ name }) => name === "PARLEY_REPLICA");
      assert.equal(replica?.valueFrom?.fieldRef?.fieldPath, "metadata.name");
    });

    test(`${service}: gives a pod more time to stop than it takes to drain`, () => {
      const drainMs = Number(container.env.find(({ name }) => name === "PARLEY_DRAIN_MS")?.value);
      const preStopSeconds = container.lifecycle?.preStop?.sleep.seconds ?? 0;
      assert.ok(drainMs > 0);
      assert.ok((spec.template.spec.terminationGracePeriodSeconds ?? 30) > drainMs / 1000 + preStopSeconds);
    });

    test(`${service}: keeps the old replicas until the new ones are ready in a rollout`, () => {
      assert.equal(at(spec, "strategy", "rollingUpdate", "maxUnavailable"), 0);
      assert.ok(Number(at(spec, "strategy", "rollingUpdate", "maxSurge")) > 0);
    });

    test(`${service}: has a service account of its own, without a role`, () => {
      assert.equal(spec.template.spec.serviceAccountName, service);
      const bound = manifestsIn("k8s/components/deletion-cost").filter(({ kind }) => kind === "RoleBinding");
      for (const binding of [...base, ...dev, ...prod, ...bound].filter(({ kind }) => kind.endsWith("RoleBinding")))
        assert.doesNotMatch(JSON.stringify(binding), new RegExp(`"name":"${service}"`));
    });

    test(`${service}: keeps other replicas available when a pod is evicted`, () => {
      const budget = base.find((each) => each.kind === "PodDisruptionBudget" && each.metadata.name === service);
      assert.equal(at(budget?.spec, "maxUnavailable"), 1);
    });
  }
});

test("gives a tool call its whole time when a tool-runner stops", () => {
  const runner = ours.find(({ metadata }) => metadata.name === "tool-runner");
  const env = runner?.spec.template.spec.containers[0]?.env ?? [];
  const drainMs = Number(env.find(({ name }) => name === "PARLEY_DRAIN_MS")?.value);
  const settings = parseSettings(read("k8s/base/parley.toml"), "parley.toml");
  // Calls get half of the drain time (services/tool-runner/src/config.ts).
  assert.ok(drainMs / 2 >= settings.tools.exec.timeout_seconds * 1000);
});

test("restricts every pod: no root, capability, writable system or API server token", () => {
  for (const { kind, metadata, spec } of deployed) {
    const what = `${kind} ${metadata.name}`;
    const pod = spec.template.spec;
    assert.equal(pod.automountServiceAccountToken, false, what);
    assert.equal(at(pod, "securityContext", "runAsNonRoot"), true, what);
    assert.equal(at(pod, "securityContext", "seccompProfile", "type"), "RuntimeDefault", what);
    assert.ok(Number(at(pod, "securityContext", "runAsUser")) > 0, what);
    for (const container of [...pod.initContainers, ...pod.containers]) {
      assert.equal(at(container, "securityContext", "runAsNonRoot"), true, what);
      assert.equal(at(container, "securityContext", "allowPrivilegeEscalation"), false, what);
      assert.equal(at(container, "securityContext", "readOnlyRootFilesystem"), true, what);
      assert.deepEqual(at(container, "securityContext", "capabilities"), { drop: ["ALL"] }, what);
      assert.ok(container.resources.requests["cpu"] && container.resources.requests["memory"], what);
      assert.ok(container.resources.limits["memory"], what);
    }
    const account = [...base, ...dev].find(
      (each) => each.kind === "ServiceAccount" && each.metadata.name === pod.serviceAccountName,
    );
    assert.equal(at(account, "automountServiceAccountToken"), false, what);
  }
  for (const overlay of [dev, prod]) {
    const namespace = overlay.find(({ kind }) => kind === "Namespace");
    assert.equal(namespace?.metadata.labels?.["pod-security.kubernetes.io/enforce"], "restricted");
  }
});

describe("secrets", () => {
  test("has no Secret manifest and no variable with a secret in clear", () => {
    for (const { kind, file } of [...base, ...dev, ...prod]) assert.notEqual(kind, "Secret", file);
    for (const file of kustomizationFiles) assert.doesNotMatch(read(file), /secretGenerator/, file);
    for (const { spec } of deployed) {
      for (const { name, value } of spec.template.spec.containers.flatMap((container) => container.env)) {
        if (value === undefined) continue;
        if (name.endsWith("_FILE") || name === "PARLEY_SECRETS_DIR") assert.match(value, /^\/run\/secrets\//);
        else assert.doesNotMatch(name, /PASSWORD|SECRET|KEY|TOKEN|_URL$/);
      }
    }
  });

  test("mounts secrets as files with the names of variables, but for the tool-runner", () => {
    for (const workload of inBase) {
      const name = serviceOf(workload);
      const [container] = workload.spec.template.spec.containers;
      assert.ok(container !== undefined);
      const refs = container.env.filter(({ valueFrom }) => valueFrom?.secretKeyRef !== undefined);
      const files = mountedFiles(workload).filter(({ volume }) => volume === "secrets");
      if (name === "tool-runner") {
        // Commands run as its user and could read files.
        assert.deepEqual(mountedFiles(workload), []);
        continue;
      }
      assert.deepEqual([refs, container.envFrom], [[], []], `${name} has secrets in its environment`);
      const folder = container.env.find((each) => each.name === "PARLEY_SECRETS_DIR")?.value;
      assert.ok(
        container.volumeMounts.some((mount) => mount.name === "secrets" && mount.mountPath === folder),
        name,
      );
      const modes = workload.spec.template.spec.volumes.flatMap(({ projected }) => projected?.defaultMode ?? []);
      assert.deepEqual(modes, [0o440], `${name}: the service refuses files that everyone can read`);
      assert.equal(at(workload.spec.template.spec, "securityContext", "fsGroup"), 10_001, name);
      for (const { secret, path, key } of files) {
        if (key === "") continue;
        assert.equal(secret, `parley-${name}`);
        assert.ok(secretVariables[path]?.includes(name), `${name} must not get ${path}`);
      }
      const required = files.filter(({ optional }) => !optional).map(({ path }) => path);
      assert.ok(required.length > 0, name);
    }
  });

  test("gives each service its own secrets and no others", () => {
    for (const { metadata, spec } of inBase) {
      const name = metadata.name.startsWith("migrate") ? "migrate" : metadata.name;
      for (const { env, envFrom } of spec.template.spec.containers) {
        for (const { name: variable, valueFrom } of env) {
          if (valueFrom?.secretKeyRef === undefined) continue;
          assert.equal(valueFrom.secretKeyRef.name, `parley-${name}`);
          assert.ok(secretVariables[variable]?.includes(name), `${name} must not get ${variable}`);
        }
        const named = name === "tool-runner" ? [{ secretRef: { name: "parley-tools-env", optional: true } }] : [];
        assert.deepEqual(envFrom, named, "the secrets that parley.toml names");
      }
    }
    const whole = inBase.flatMap((workload) =>
      mountedFiles(workload).flatMap(({ secret, key, optional }) =>
        key === "" ? [`${serviceOf(workload)}: ${secret} ${optional}`] : [],
      ),
    );
    assert.deepEqual(whole, ["agent-core: parley-agent-env true", "channel-gateway: parley-channels true"]);
  });

  test("creates exactly the secrets of the dev overlay with make-secrets.mjs", () => {
    const script = join(root, "k8s/overlays/dev/make-secrets.mjs");
    const env = {
      PATH: process.env["PATH"] ?? "",
      ANTHROPIC_API_KEY: "only-for-the-test",
      OPENAI_API_KEY: "only-for-the-test",
      PARLEY_BLOB_BUCKET: "parley",
      PARLEY_BLOB_ENDPOINT: "https://s3.example.com",
      PARLEY_BLOB_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: "only-for-the-test",
      AWS_SECRET_ACCESS_KEY: "only-for-the-test",
    };
    const printed = execFileSync(process.execPath, [script], {
      encoding: "utf8",
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const list = z.object({
      items: z.array(
        z.object({ metadata: z.object({ name: z.string() }), stringData: z.record(z.string(), z.string()) }),
      ),
    });
    const made = list
      .parse(JSON.parse(printed))
      .items.flatMap(({ metadata, stringData }) => Object.keys(stringData).map((key) => `${metadata.name}/${key}`));
    const wanted = workloads([...base, ...dev])
      .flatMap(({ spec }) => spec.template.spec.containers.flatMap(({ env: variables }) => variables))
      .flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? [])
      .map(({ name, key }) => `${name}/${key}`)
      .concat(mountedSecrets([...base, ...dev]));
    assert.deepEqual(made.sort(), [...new Set(wanted)].sort());
  });

  test("documents every secret that the services need in docs/deploy.md", () => {
    const refs = inBase.flatMap(({ spec }) =>
      spec.template.spec.containers.flatMap(({ env }) => env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? [])),
    );
    const files = inBase.flatMap(mountedFiles).map(({ secret, key }) => ({ name: secret, key }));
    for (const { name, key } of [...refs, ...files]) {
      if (key === "") {
        assert.match(read("docs/deploy.md"), new RegExp(`\`${name}\` \\(optional\\)`));
        continue;
      }
      assert.ok(read("docs/deploy.md").includes(`\`${name}\``), name);
      assert.ok(read("docs/deploy.md").includes(`\`${key}\``), key);
    }
    const whole = inBase.flatMap(({ spec }) => spec.template.spec.containers.flatMap(({ envFrom }) => envFrom));
    for (const { secretRef } of whole)
      assert.match(read("docs/deploy.md"), new RegExp(`\`${secretRef?.name}\` \\(optional\\)`));
  });
});

describe("network policies", () => {
  const policies = [...base, ...dev].filter(({ kind }) => kind === "NetworkPolicy");

  test("deny everything that no policy allows", () => {
    const all = policies.find(({ metadata }) => metadata.name === "parley");
    assert.deepEqual(all?.spec, {
      podSelector: { matchLabels: { [partLabel]: "parley" } },
      policyTypes: ["Ingress", "Egress"],
    });
  });

  test("give each backing service one owner, in both directions", () => {
    const owners: Record<string, readonly string[]> = {
      postgres: ["migrate", "store"],
      redis: ["agent-core"],
      nats: [...services].sort(),
    };
    for (const [server, expected] of Object.entries(owners)) {
      const callers = policies
        .filter(({ spec }) => at(spec, "egress", 0, "to", 0, "podSelector", "matchLabels", nameLabel) === server)
        .map(({ spec }) => text(at(spec, "podSelector", "matchLabels", nameLabel)));
      assert.deepEqual(callers.sort(), expected, `egress to ${server}`);
      const taken = policies.find(({ spec }) => at(spec, "podSelector", "matchLabels", nameLabel) === server);
      const from = z.array(z.unknown()).parse(at(taken?.spec, "ingress", 0, "from"));
      assert.deepEqual(
        from.map((each) => text(at(each, "podSelector", "matchLabels", nameLabel))).sort(),
        expected,
        `ingress of ${server}`,
      );
    }
  });

  test("allow the tool-runner only DNS and NATS, and external access only to the gateway", () => {
    const of = (service: string, direction: string) =>
      policies
        .filter(
          ({ spec }) =>
            at(spec, "podSelector", "matchLabels", nameLabel) === service && at(spec, direction) !== undefined,
        )
        .map(({ metadata }) => metadata.name);
    assert.deepEqual(of("tool-runner", "egress"), ["tool-runner-to-nats"]);
    assert.deepEqual(
      services.flatMap((service) => of(service, "ingress")),
      ["people-to-channel-gateway"],
    );
  });

  test("allow the gateway exactly the ports of the channels on the public internet", () => {
    const policy = policies.find(({ metadata }) => metadata.name === "channel-gateway-to-channels");
    const ports = z.array(z.object({ protocol: z.literal("TCP"), port: z.number() }));
    const allowed = ports.parse(at(policy?.spec, "egress", 0, "ports")).map(({ port }) => port);
    assert.deepEqual(allowed, channelPorts());
  });

  test("change every policy towards a server, and no other, in the prod overlay", () => {
    const moved = parseFile("k8s/overlays/prod/network-policies.yaml").map((each) =>
      text(at(each, "metadata", "name")),
    );
    const towards = base
      .filter(
        ({ kind, spec }) =>
          kind === "NetworkPolicy" &&
          at(spec, "egress", 0, "to", 0, "podSelector", "matchLabels", nameLabel) !== undefined,
      )
      .map(({ metadata }) => metadata.name);
    assert.deepEqual(moved.sort(), towards.sort());
  });
});

test("replaces every image of the base in the prod overlay", () => {
  const images = z
    .array(z.object({ name: z.string() }))
    .parse(at(parse(read("k8s/overlays/prod/kustomization.yaml")), "images"));
  const used = inBase.flatMap(({ spec }) => spec.template.spec.containers.map(({ image }) => image.replace(/:.*/, "")));
  assert.deepEqual(images.map(({ name }) => name).sort(), used.sort());
});

test("refuses commands on another kernel when gVisor is required", () => {
  const [patch] = parseFile("k8s/components/gvisor/tool-runner.yaml");
  assert.equal(at(patch, "metadata", "name"), "tool-runner");
  const pod = at(patch, "spec", "template", "spec");
  assert.equal(at(pod, "runtimeClassName"), "gvisor");
  const variables = z.array(z.object({ name: z.string(), value: z.string() })).parse(at(pod, "containers", 0, "env"));
  assert.deepEqual(variables, [{ name: "PARLEY_EXEC_MIN_ISOLATION", value: "gvisor" }]);
  assert.ok(variablesOf("tool-runner").includes("PARLEY_EXEC_MIN_ISOLATION"));
});

const tools = await kubernetesTools();

describe("kustomize", { skip: tools === undefined ? "kubectl is not available" : false }, () => {
  const render = (folder: string) =>
    execFileSync(tools?.kubectl ?? "", ["kustomize", folder], { encoding: "utf8", maxBuffer: 64e6 });

  test("renders base and overlays", () => {
    for (const folder of ["base", "overlays/dev", "overlays/prod"])
      assert.match(render(join(root, "k8s", folder)), /name: parley-config-[a-z0-9]+/, folder);
  });

  test("renders every component, and all that an overlay may combine", async () => {
    await using cleanup = new Cleanup();
    const folder = await temporaryFolder(cleanup);
    for (const part of ["k8s", "infra"]) cpSync(join(root, part), join(folder, part), { recursive: true });
    const components = readdirSync(join(root, "k8s/components"));
    const choices = [...components.map((each) => [each]), components.filter((each) => each !== "hpa")];
    const place = join(folder, "k8s/overlays/test");
    mkdirSync(place);
    for (const chosen of choices) {
      const kustomization = {
        apiVersion: "kustomize.config.k8s.io/v1beta1",
        kind: "Kustomization",
        namespace: "parley",
        resources: ["../../base"],
        components: chosen.map((each) => `../../components/${each}`),
      };
      writeFileSync(join(place, "kustomization.yaml"), JSON.stringify(kustomization));
      assert.match(render(place), /kind: Deployment/, chosen.join(", "));
    }
  });
});
