// A Kubernetes cluster as the target of the scenes of test/chaos/load.
import { setTimeout as delay } from "node:timers/promises";
import type { ServiceName } from "@parley/contracts";
import type { SceneTarget } from "../chaos/load/scenes.ts";
import { listPods, untilComplete } from "./deployment.ts";
import { KubectlError, type Kubectl } from "./kubectl.ts";
import { linkMark } from "./objects.ts";
import type { Pod } from "./workloads.ts";

const pauseMs = 2_000;
const evictionPauseMs = 1_000;

export function clusterTarget(kubectl: Kubectl, namespace: string): SceneTarget {
  const podsOf = async (app: string): Promise<Pod[]> =>
    (await listPods(kubectl)).filter((pod) => pod.app === app && pod.isRunning && !pod.isDeleted);
  const eachPod = async (service: ServiceName, act: (pod: Pod) => Promise<void>): Promise<void> => {
    for (const pod of await podsOf(service)) {
      await act(pod);
      await untilComplete(kubectl);
      await delay(pauseMs);
    }
  };
  return {
    async rollOut(service) {
      await kubectl.run(["rollout", "restart", `deployment/${service}`]);
      await untilComplete(kubectl);
    },
    kill: (service) =>
      eachPod(service, async (pod) => {
        await signal(kubectl, pod, "KILL", serviceMark);
        await untilRestarted(kubectl, pod);
      }),
    cut: (service, forMs) =>
      eachPod(service, async (pod) => {
        await signal(kubectl, pod, "STOP", linkMark);
        await delay(forMs);
        await signal(kubectl, pod, "CONT", linkMark);
      }),
    evict: (service) =>
      eachPod(service, async ({ name }) => {
        await evict(kubectl, name, namespace);
        await untilGone(kubectl, name);
      }),
    async restartServer(server) {
      const [pod] = await podsOf(server);
      if (pod === undefined) throw new Error(`no pod of ${server}`);
      // PostgreSQL's volume must not be used by two pods, so its pod is not forced away.
      const grace = server === "postgres" ? ["--grace-period=5"] : ["--grace-period=0", "--force"];
      await kubectl.run(["delete", "pod", pod.name, "--wait", ...grace], { timeoutMs: 120_000 });
      await untilComplete(kubectl);
    },
    async scale(service, count) {
      await kubectl.run(["scale", `deployment/${service}`, `--replicas=${count}`]);
      await untilComplete(kubectl);
    },
  };
}

/** In the command line of every service, as the images start it. */
export const serviceMark = "bundle/main.js";

/** The script that sends a signal to the processes of a pod whose command line contains the mark, and fails when there is none. */
export function signalScript(name: "KILL" | "STOP" | "CONT", mark: string): string {
  // The brackets keep the script itself from being found.
  const pattern = `${mark.slice(0, -1)}[${mark.slice(-1)}]`;
  return [
    "found=1",
    "for process in /proc/[0-9]*; do",
    `if tr '\\0' ' ' 2>/dev/null < "$process/cmdline" | grep -q '${pattern}'; then`,
    `kill -${name} "\${process#/proc/}" && found=0; fi`,
    "done",
    "exit $found",
  ].join("\n");
}

async function signal(kubectl: Kubectl, pod: Pod, name: "KILL" | "STOP" | "CONT", mark: string): Promise<void> {
  await kubectl
    .run(["exec", pod.name, "--container", pod.container, "--", "sh", "-c", signalScript(name, mark)])
    .catch((error: unknown) => {
      // The container that ran the script may end with the process that it killed.
      if (name === "KILL" && error instanceof KubectlError && /137|terminated|EOF|closed/i.test(error.stderr)) return;
      throw error;
    });
}

const restartMs = 6 * 60_000;

/** Kubernetes restarts a container immediately, and later after 10 s, 20 s and so on. */
async function untilRestarted(kubectl: Kubectl, { name, restarts }: Pod): Promise<void> {
  for (const deadline = performance.now() + restartMs; performance.now() < deadline; await delay(pauseMs / 4)) {
    const pod = (await listPods(kubectl)).find((each) => each.name === name);
    if (pod === undefined || (pod.restarts > restarts && pod.isReady)) return;
  }
  throw new Error(`${name} was killed and not restarted within ${restartMs / 60_000} min`);
}

/** As a drain of the node does: the disruption budgets decide when. */
async function evict(kubectl: Kubectl, pod: string, namespace: string): Promise<void> {
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod, namespace } };
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/eviction`;
  for (;;) {
    try {
      await kubectl.run(["create", "--raw", path, "--filename", "-"], { input: JSON.stringify(eviction) });
      return;
    } catch (error) {
      if (!(error instanceof KubectlError) || !/disruption budget|TooManyRequests/i.test(error.stderr)) throw error;
      await delay(evictionPauseMs);
    }
  }
}

async function untilGone(kubectl: Kubectl, pod: string): Promise<void> {
  // Tool-runners may take minutes to drain.
  await kubectl.run(["wait", "--for=delete", `pod/${pod}`, "--timeout=300s"], { timeoutMs: 310_000 });
}
