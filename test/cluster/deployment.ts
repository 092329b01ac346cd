// The namespace of the suite: applies, waits and deletes.
import { setTimeout as delay } from "node:timers/promises";
import type { Kubectl } from "./kubectl.ts";
import { CannotRun } from "./options.ts";
import type { Deployed, KubernetesObject } from "./objects.ts";
import { describeWaiting, incomplete, missingImages, podsIn, type Pod } from "./workloads.ts";

const pollMs = 2_000;
const completeMs = 8 * 60_000;
const deleteMs = 10 * 60_000;

export async function listPods(kubectl: Kubectl): Promise<Pod[]> {
  return podsIn(await kubectl.run(["get", "pods", "--output", "json"]));
}

/** Creates the namespace. Rejects with CannotRun when it exists: nothing of others is changed or deleted. */
export async function createNamespace(kubectl: Kubectl, namespace: KubernetesObject): Promise<void> {
  await kubectl.run(["create", "--filename", "-"], { input: JSON.stringify(namespace) }).catch((error: unknown) => {
    throw new CannotRun(`the namespace ${namespace.metadata.name} cannot be created: ${String(error)}`);
  });
}

export async function apply(kubectl: Kubectl, objects: readonly KubernetesObject[]): Promise<void> {
  const list = { apiVersion: "v1", kind: "List", items: objects };
  await kubectl.run(["apply", "--validate=strict", "--filename", "-"], { input: JSON.stringify(list) });
}

/** Applies everything and waits until all of it runs. */
export async function deploy(kubectl: Kubectl, { secrets, rest }: Deployed): Promise<void> {
  await apply(kubectl, secrets);
  await apply(kubectl, rest);
  await untilComplete(kubectl);
}

/** Resolves when all replicas of all workloads are ready and no other pod of theirs is left. Rejects with what is missing. */
export async function untilComplete(kubectl: Kubectl, withinMs = completeMs): Promise<void> {
  for (const deadline = performance.now() + withinMs; ; await delay(pollMs)) {
    const pods = await listPods(kubectl);
    const images = missingImages(pods);
    if (images !== undefined) throw new CannotRun(images);
    const kinds = "deployments,statefulsets,jobs";
    const rest = incomplete(await kubectl.run(["get", kinds, "--output", "json"]));
    if (rest.length === 0 && pods.every(({ isDeleted }) => !isDeleted)) return;
    if (performance.now() > deadline)
      throw new Error(
        `not complete after ${Math.round(withinMs / 1_000)} s: ${[...rest, ...describeWaiting(pods)].join("; ")}`,
      );
  }
}

export async function deleteNamespace(kubectl: Kubectl, namespace: string): Promise<void> {
  const args = ["delete", "namespace", namespace, "--ignore-not-found", "--wait", `--timeout=${deleteMs / 1_000}s`];
  await kubectl.run(args, { timeoutMs: deleteMs + 10_000 });
}
