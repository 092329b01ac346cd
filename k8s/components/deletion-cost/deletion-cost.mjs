// Writes the number of background commands of each tool-runner as the deletion cost of its pod: a scale-down then removes those without
// commands first. Plain JavaScript without dependencies: it runs from a ConfigMap.

/* oxlint-disable typescript/no-unsafe-return -- plain JavaScript: nothing here has a type */

import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

export const annotation = "controller.kubernetes.io/pod-deletion-cost";
const selector = "app.kubernetes.io/name=tool-runner";
const healthPort = 8080;
const everyMs = 1_000;
const requestMs = 2_000;

/**
 * The background commands in the text of `/metrics`; undefined when the metric is missing.
 * @param {string} metrics
 * @returns {number | undefined}
 */
export function commandsIn(metrics) {
  const value = /^parley_background_commands(?:\{[^}]*\})? (\d+)/m.exec(metrics)?.[1];
  return value === undefined ? undefined : Number(value);
}

/**
 * Compares each tool-runner with its annotation, and corrects it. A pod that does not answer keeps its cost, and delays no other.
 * @param {{ list(): Promise<{ name: string, ip: string, cost: string | undefined }[]>, annotate(name: string, cost: string | null): Promise<void> }} pods
 * @param {(ip: string) => Promise<string>} metricsOf
 * @returns {Promise<Map<string, number>>} the costs that were changed, by pod
 */
export async function updateCosts(pods, metricsOf) {
  const changed = new Map();
  const update = async ({ name, ip, cost = "0" }) => {
    const commands = await metricsOf(ip).then(commandsIn, () => undefined);
    if (commands === undefined || String(commands) === cost) return;
    await pods.annotate(name, commands === 0 ? null : String(commands));
    changed.set(name, commands);
  };
  const failed = (await Promise.allSettled((await pods.list()).map(update))).find(
    ({ status }) => status === "rejected",
  );
  if (failed !== undefined) throw failed.reason;
  return changed;
}

/**
 * The pods of a namespace by the API server. The token is read for each request, because Kubernetes replaces it.
 * @param {{ url: string, namespace: string, token: () => string }} api
 */
export function podsOf({ url, namespace, token }) {
  const request = async (path, init = {}) => {
    const headers = { authorization: `Bearer ${token()}`, ...init.headers };
    const response = await fetch(`${url}/api/v1/namespaces/${namespace}/pods${path}`, {
      ...init,
      headers,
      signal: AbortSignal.timeout(requestMs),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`the API server responded ${response.status}: ${text.slice(0, 300)}`);
    return JSON.parse(text);
  };
  return {
    async list() {
      const { items } = await request(`?labelSelector=${encodeURIComponent(selector)}`);
      return items
        .filter(({ metadata, status }) => status.podIP !== undefined && metadata.deletionTimestamp === undefined)
        .map(({ metadata, status }) => ({
          name: metadata.name,
          ip: status.podIP,
          cost: metadata.annotations?.[annotation],
        }));
    },
    // The subresource keeps everything but the status and the labels and annotations: a pod's image cannot be changed there.
    async annotate(name, cost) {
      await request(`/${name}/status`, {
        method: "PATCH",
        headers: { "content-type": "application/merge-patch+json" },
        body: JSON.stringify({ metadata: { annotations: { [annotation]: cost } } }),
      });
    },
  };
}

async function metricsOf(ip) {
  const host = ip.includes(":") ? `[${ip}]` : ip;
  const response = await fetch(`http://${host}:${healthPort}/metrics`, { signal: AbortSignal.timeout(requestMs) });
  return response.text();
}

if (import.meta.main) {
  const folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  const {
    KUBERNETES_SERVICE_HOST: host = "",
    KUBERNETES_SERVICE_PORT: port,
    POD_NAMESPACE: namespace = "",
  } = process.env;
  const url = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const pods = podsOf({ url, namespace, token: () => readFileSync(`${folder}/token`, "utf8").trim() });
  // Nothing is open when it ends: the first process of a container has no default handler.
  process.on("SIGTERM", () => process.exit(0));
  for (;;) {
    try {
      for (const [pod, commands] of await updateCosts(pods, metricsOf))
        console.log(`${pod}: ${commands} background commands`);
    } catch (error) {
      console.error(String(error));
    }
    await delay(everyMs);
  }
}
