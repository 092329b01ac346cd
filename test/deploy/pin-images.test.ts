// The images of others: each is found by `npm run images:pin`, which adds digests.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { filesWithImages, imagesIn, withDigests } from "../../infra/docker/pin-images.ts";
import { read, root } from "./support/repository.ts";

const digest = `sha256:${"a".repeat(64)}`;

test("finds every image of others in the Dockerfile, Compose and the manifests", () => {
  const found = new Set(filesWithImages.flatMap((path) => imagesIn(read(path))));
  const files = ["k8s", "infra/docker"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
    )
    .filter((name) => /\.ya?ml$/.test(name));
  const named = [...files, "docker-compose.yml"]
    .flatMap((path) =>
      [...read(path).matchAll(/^\s*image: (\S+)$/gm)].map(([, image = ""]) => image.split("@")[0] ?? ""),
    )
    .filter((image) => !image.startsWith("parley/"));
  assert.ok(found.has("node:24-bookworm-slim"));
  assert.deepEqual([...found].toSorted(), [...new Set([...named, "node:24-bookworm-slim"])].toSorted());
});

test("adds a digest to a tag, replaces an older one and leaves our own images alone", () => {
  const text = (suffix: string) =>
    `ARG NODE_IMAGE=node:24-bookworm-slim${suffix}\n    image: nats:2.12-alpine${suffix}\n    image: parley/store:0.1.0\n`;
  const digests = new Map(["node:24-bookworm-slim", "nats:2.12-alpine"].map((image) => [image, digest]));
  assert.equal(withDigests(text(""), digests), text(`@${digest}`));
  assert.equal(withDigests(text(`@sha256:${"b".repeat(64)}`), digests), text(`@${digest}`));
  assert.equal(withDigests(text(""), new Map()), text(""));
});

test("pins the same tag everywhere with the same digest", () => {
  const pinned = new Map<string, Set<string>>();
  for (const path of filesWithImages)
    for (const [, tag = "", suffix = ""] of read(path).matchAll(/(?:image: |NODE_IMAGE=)([\w./-]+:[\w.-]+)(@\S+)?$/gm))
      pinned.set(tag, (pinned.get(tag) ?? new Set()).add(suffix));
  for (const [tag, suffixes] of pinned) assert.equal(suffixes.size, 1, tag);
});
