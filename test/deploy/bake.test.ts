// docker-bake.json builds every image of the Dockerfile, under the names that the manifests use.

import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";

import { read, version } from "./support/repository.ts";

const Target = z.object({
  inherits: z.tuple([z.literal("image")]),
  target: z.string(),
  tags: z.array(z.string()).length(1),
});
const Bake = z.strictObject({
  variable: z.record(z.string(), z.object({ default: z.string() })),
  group: z.object({ default: z.object({ targets: z.array(z.string()) }) }),
  target: z
    .object({
      image: z.object({
        context: z.string(),
        platforms: z.array(z.string()),
        labels: z.record(z.string(), z.string()),
      }),
    })
    .catchall(Target),
});
const bake = Bake.parse(JSON.parse(read("docker-bake.json")));
const defaults = new Map(Object.entries(bake.variable).map(([name, variable]) => [name, variable.default]));
const withDefaults = (text: string) => text.replace(/\$\{(\w+)\}/g, (_, name: string) => defaults.get(name) ?? name);

/** Stages that no image is built from. */
const inner = new Set(["build", "runtime"]);

test("docker-bake.json builds every target of the Dockerfile for both platforms", () => {
  const stages = [...read("Dockerfile").matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, name = ""]) => name);
  const { image, ...targets } = bake.target;
  assert.deepEqual(bake.group.default.targets.toSorted(), stages.filter((name) => !inner.has(name)).toSorted());
  assert.deepEqual(Object.keys(targets).toSorted(), bake.group.default.targets.toSorted());
  for (const [name, { target }] of Object.entries(targets)) assert.equal(target, name);
  assert.deepEqual(image.platforms, ["linux/amd64", "linux/arm64"]);
});

test("docker-bake.json uses the names of the manifests and the version of the package by default", () => {
  const { image, ...targets } = bake.target;
  assert.equal(withDefaults(image.labels["org.opencontainers.image.version"] ?? ""), version);
  const manifests = ["store", "migrate", "agent-core", "tool-runner", "channel-gateway"].map((name) =>
    read(`k8s/base/${name}.yaml`),
  );
  const named = new Set(
    manifests.flatMap((text) => [...text.matchAll(/image: (parley\/\S+)/g)].map(([, name]) => name)),
  );
  const built = Object.values(targets).map(({ tags: [tag = ""] }) => withDefaults(tag));
  assert.deepEqual(new Set(built), named);
});
