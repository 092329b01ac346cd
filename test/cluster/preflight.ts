// Whether the cluster can be used, before anything is changed there.
import { z } from "zod";
import type { Kubectl } from "./kubectl.ts";
import { KubectlError } from "./kubectl.ts";
import { CannotRun } from "./options.ts";

/** lifecycle.sleep, matchLabelKeys and sidecars. */
const oldestVersion = { major: 1, minor: 30 };

/** What the suite does in the cluster, as arguments of `kubectl auth can-i`. */
const neededRights: readonly (readonly string[])[] = [
  ["create", "namespaces"],
  ["delete", "namespaces"],
  ...[
    "secrets",
    "configmaps",
    "services",
    "serviceaccounts",
    "persistentvolumeclaims",
    "pods",
    "deployments.apps",
    "statefulsets.apps",
    "jobs.batch",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
  ].map((resource) => ["create", resource]),
  ["list", "pods"],
  ["delete", "pods"],
  ["patch", "deployments.apps"],
  ["create", "pods", "--subresource=exec"],
  ["create", "pods", "--subresource=portforward"],
  ["create", "pods", "--subresource=eviction"],
  ["patch", "deployments.apps", "--subresource=scale"],
];

const Versions = z.object({
  serverVersion: z.object({ major: z.string(), minor: z.string(), gitVersion: z.string() }),
});

/** The version of the server, such as `v1.36.2`. Throws CannotRun for one that is too old. */
export function checkVersion(json: string): string {
  const { major, minor, gitVersion } = Versions.parse(JSON.parse(json)).serverVersion;
  // Providers add a sign: "30+".
  const [one, two] = [Number.parseInt(major), Number.parseInt(minor)];
  if (one > oldestVersion.major || (one === oldestVersion.major && two >= oldestVersion.minor)) return gitVersion;
  throw new CannotRun(
    `the cluster has Kubernetes ${gitVersion}; the manifests need ${oldestVersion.major}.${oldestVersion.minor} or newer`,
  );
}

/** Throws CannotRun when the kubeconfig does not have the context. */
function checkContext(context: string, names: string): void {
  const known = names.split("\n").filter((name) => name !== "");
  if (known.includes(context)) return;
  const there = known.length === 0 ? "it names no context" : `it has ${known.join(", ")}`;
  throw new CannotRun(`the kubeconfig has no context ${context}: ${there}`);
}

/** Resolves with the version of the server. Rejects with CannotRun. */
export async function preflight(kubectl: Kubectl, context: string): Promise<string> {
  checkContext(context, await kubectl.run(["config", "get-contexts", "--output", "name"]));
  const versions = await kubectl.run(["version", "--output", "json"]).catch((error: unknown) => {
    throw new CannotRun(`the cluster of context ${context} does not answer: ${messageOf(error)}`);
  });
  const version = checkVersion(versions);
  const missing: string[] = [];
  for (const right of neededRights) if (!(await isAllowed(kubectl, right))) missing.push(right.join(" "));
  if (missing.length > 0) throw new CannotRun(`the user of context ${context} has no right to: ${missing.join("; ")}`);
  return version;
}

/** `auth can-i` answers "no" with exit code 1; any other failure is an error. */
async function isAllowed(kubectl: Kubectl, right: readonly string[]): Promise<boolean> {
  try {
    return (await kubectl.run(["auth", "can-i", ...right])).trim() === "yes";
  } catch (error) {
    if (error instanceof KubectlError && error.stdout.trim().startsWith("no")) return false;
    throw error;
  }
}

function messageOf(error: unknown): string {
  return error instanceof KubectlError ? error.stderr.trim() : String(error);
}
