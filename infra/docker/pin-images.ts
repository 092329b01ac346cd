// npm run images:pin: adds the digest that the registry has now to the base image of the Dockerfile and to the images of the servers, or
// replaces an older one. A tag can change its content; a digest cannot. Needs a Docker client with buildx, and the registry.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { errorMessage } from "@parley/contracts";

/** The files that name images of others. */
export const filesWithImages = [
  "Dockerfile",
  "docker-compose.yml",
  "infra/docker/observability.yml",
  "k8s/overlays/dev/nats.yaml",
  "k8s/overlays/dev/postgres.yaml",
  "k8s/overlays/dev/redis.yaml",
] as const;

const reference = /^(ARG NODE_IMAGE=|\s*image: )([\w./-]+:[\w.-]+)(?:@sha256:[0-9a-f]{64})?$/gm;
/** Built from this repository. */
const isOurs = (image: string) => image.startsWith("parley/");

/** The images of others in a text, each with its tag. */
export function imagesIn(text: string): string[] {
  return [...text.matchAll(reference)].map(([, , image = ""]) => image).filter((image) => !isOurs(image));
}

/** The text with `<image>:<tag>@<digest>` for each image that has a digest. */
export function withDigests(text: string, digests: ReadonlyMap<string, string>): string {
  return text.replace(reference, (whole, before: string, image: string) => {
    const digest = digests.get(image);
    return digest === undefined ? whole : `${before}${image}@${digest}`;
  });
}

/** The digest of the list of all platforms of an image. Throws when the registry does not answer. */
function digestOf(image: string): string {
  const args = ["buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", image];
  const digest = execFileSync("docker", args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`the registry answered "${digest}" for ${image}`);
  return digest;
}

if (import.meta.main) {
  const root = new URL("../../", import.meta.url);
  const texts = filesWithImages.map((path) => ({ path, text: readFileSync(new URL(path, root), "utf8") }));
  const images = new Set(texts.flatMap(({ text }) => imagesIn(text)));
  const digests = new Map<string, string>();
  try {
    for (const image of images) digests.set(image, digestOf(image));
  } catch (error) {
    process.stderr.write(`images:pin: no file was changed: ${errorMessage(error)}\n`);
    process.exit(1);
  }
  for (const { path, text } of texts) writeFileSync(fileURLToPath(new URL(path, root)), withDigests(text, digests));
  for (const [image, digest] of digests) process.stdout.write(`${image}@${digest}\n`);
}
