// The components for ways into the cluster: strict schemas, and limits that fit those of the gateway.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { parseSettings } from "@parley/chassis";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

import { bodyLimitFor } from "../../services/channel-gateway/src/http/openai-input.ts";
import { kubernetesTools } from "./support/kubernetes-tools.ts";
import { root } from "./support/repository.ts";

const settings = parseSettings("", "test");
const turnSeconds = settings.limits.max_turn_seconds;

const metadata = z.strictObject({
  name: z.literal("channel-gateway"),
  namespace: z.literal("parley"),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()).optional(),
});
const backend = z.strictObject({
  service: z.strictObject({ name: z.literal("channel-gateway"), port: z.strictObject({ name: z.literal("http") }) }),
});

/** networking.k8s.io/v1, as far as the components use it. */
const Ingress = z.strictObject({
  apiVersion: z.literal("networking.k8s.io/v1"),
  kind: z.literal("Ingress"),
  metadata,
  spec: z.strictObject({
    ingressClassName: z.string(),
    tls: z.array(z.strictObject({ hosts: z.array(z.string()), secretName: z.string() })).length(1),
    rules: z
      .array(
        z.strictObject({
          host: z.string(),
          http: z.strictObject({
            paths: z.array(z.strictObject({ path: z.literal("/"), pathType: z.literal("Prefix"), backend })).length(1),
          }),
        }),
      )
      .length(1),
  }),
});

/** The Gateway API's durations: up to four numbers with a unit. */
const Duration = z.string().regex(/^(?:\d{1,5}(?:h|m|s|ms)){1,4}$/);

/** gateway.networking.k8s.io/v1, as far as the component uses it. */
const HttpRoute = z.strictObject({
  apiVersion: z.literal("gateway.networking.k8s.io/v1"),
  kind: z.literal("HTTPRoute"),
  metadata,
  spec: z.strictObject({
    parentRefs: z.array(z.strictObject({ name: z.string(), namespace: z.string() })).length(1),
    hostnames: z.array(z.string()).min(1),
    rules: z
      .array(
        z.strictObject({
          matches: z.array(
            z.strictObject({ path: z.strictObject({ type: z.literal("PathPrefix"), value: z.literal("/") }) }),
          ),
          timeouts: z.strictObject({ request: Duration, backendRequest: Duration }),
          backendRefs: z.array(z.strictObject({ name: z.literal("channel-gateway"), port: z.literal(80) })).length(1),
        }),
      )
      .length(1),
  }),
});

/** The annotations of nginx, all of those that its two controllers read here. */
const NginxAnnotations = z.strictObject({
  "nginx.ingress.kubernetes.io/proxy-body-size": z.string(),
  "nginx.ingress.kubernetes.io/proxy-read-timeout": z.string().regex(/^\d+$/),
  "nginx.ingress.kubernetes.io/proxy-send-timeout": z.string().regex(/^\d+$/),
  "nginx.org/client-max-body-size": z.string(),
  "nginx.org/proxy-read-timeout": z.string().regex(/^\d+s$/),
  "nginx.org/proxy-send-timeout": z.string().regex(/^\d+s$/),
  "nginx.org/websocket-services": z.literal("channel-gateway"),
});
const TraefikAnnotations = z.strictObject({
  "traefik.ingress.kubernetes.io/router.entrypoints": z.literal("websecure"),
  "traefik.ingress.kubernetes.io/router.tls": z.literal("true"),
});

const tools = await kubernetesTools();

describe("ways into the cluster", { skip: tools === undefined ? "kubectl is not available" : false }, () => {
  const cleanup = new Cleanup();
  let folder: string;
  before(async () => {
    folder = await temporaryFolder(cleanup);
    for (const part of ["k8s", "infra"]) cpSync(join(root, part), join(folder, part), { recursive: true });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const known = new Map<string, Record<string, unknown>[]>();
  /** The objects of the prod overlay with a component. */
  const rendered = (component: string): Record<string, unknown>[] => {
    const found = known.get(component);
    if (found !== undefined) return found;
    const place = join(folder, "k8s/overlays", component);
    cpSync(join(folder, "k8s/overlays/prod"), place, { recursive: true });
    const kustomization = {
      apiVersion: "kustomize.config.k8s.io/v1beta1",
      kind: "Kustomization",
      namespace: "parley",
      resources: ["../../base", "ingress.yaml"],
      components: [`../../components/${component}`],
    };
    writeFileSync(join(place, "kustomization.yaml"), JSON.stringify(kustomization));
    const text = execFileSync(tools?.kubectl ?? "", ["kustomize", place], { encoding: "utf8", maxBuffer: 64e6 });
    const objects = parseAllDocuments(text).map((document) => document.toJS() as Record<string, unknown>);
    known.set(component, objects);
    return objects;
  };
  const only = (objects: readonly Record<string, unknown>[], kind: string) => {
    const found = objects.filter((each) => each["kind"] === kind);
    assert.equal(found.length, 1, kind);
    return found[0];
  };

  const bytes = (size: string) => Number(/^(\d+)m$/.exec(size)?.[1]) * 1024 * 1024;

  test("nginx accepts what the gateway accepts, for as long as a turn may take", () => {
    const { metadata: about, spec } = Ingress.parse(only(rendered("ingress-nginx"), "Ingress"));
    assert.equal(spec.ingressClassName, "nginx");
    const set = NginxAnnotations.parse(about.annotations);
    for (const size of [set["nginx.ingress.kubernetes.io/proxy-body-size"], set["nginx.org/client-max-body-size"]])
      assert.ok(bytes(size) >= bodyLimitFor({ settings }), size);
    for (const [name, value] of Object.entries(set))
      if (name.endsWith("-timeout")) assert.ok(Number.parseInt(value) >= turnSeconds, name);
  });

  test("Traefik serves the host over TLS only, without a middleware that holds back answers", () => {
    const { metadata: about, spec } = Ingress.parse(only(rendered("ingress-traefik"), "Ingress"));
    assert.equal(spec.ingressClassName, "traefik");
    TraefikAnnotations.parse(about.annotations);
  });

  test("the Gateway API's route replaces the Ingress and waits as long as a turn may take", () => {
    const objects = rendered("gateway-api");
    assert.deepEqual(
      objects.filter(({ kind }) => kind === "Ingress"),
      [],
    );
    const { spec } = HttpRoute.parse(only(objects, "HTTPRoute"));
    for (const { timeouts } of spec.rules)
      for (const limit of Object.values(timeouts))
        assert.ok(Number(/^(\d+)h$/.exec(limit)?.[1]) * 3_600 >= turnSeconds, limit);
  });

  for (const [component, namespace] of [
    ["ingress-nginx", "ingress-nginx"],
    ["ingress-traefik", "traefik"],
    ["gateway-api", "gateway"],
  ] as const) {
    test(`${component} admits only the namespace of its proxy to the gateway`, () => {
      const policies = rendered(component).filter(({ kind }) => kind === "NetworkPolicy");
      const Policy = z.looseObject({
        metadata: z.looseObject({ name: z.string() }),
        spec: z.looseObject({ ingress: z.array(z.unknown()).optional() }),
      });
      const found = policies
        .map((each) => Policy.parse(each))
        .find((each) => each.metadata.name === "people-to-channel-gateway");
      assert.deepEqual(found?.spec.ingress, [
        {
          from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } } }],
          ports: [{ port: "http", protocol: "TCP" }],
        },
      ]);
    });
  }
});
