// Starts that must be held back: a rollout with a wrong setting waits, the old pods go on serving, and `/startupz` of the new one says why.
import { setTimeout as delay } from "node:timers/promises";
import type { ServiceName } from "@parley/contracts";
import { listPods, untilComplete } from "./deployment.ts";
import { KubectlError, type Kubectl } from "./kubectl.ts";

export interface HeldBackStart {
  name: string;
  service: ServiceName;
  /** The variable that is set wrongly; it takes precedence over the mounted file. */
  variable: string;
  value: string;
  /** What `/startupz` says. */
  reason: RegExp;
}

/** `emptyDatabaseUrl`: a database without a schema that the store's login may connect to. */
export function heldBackStarts(emptyDatabaseUrl: string): HeldBackStart[] {
  return [
    {
      name: "a wrong password of Redis",
      service: "agent-core",
      variable: "REDIS_URL",
      value: "redis://agent-core:wrong@redis:6379",
      reason: /Redis/,
    },
    {
      name: "a workspace that cannot be written",
      service: "tool-runner",
      variable: "PARLEY_WORKSPACE",
      value: "/usr",
      reason: /\/usr/,
    },
    {
      name: "a missing migration",
      service: "store",
      variable: "DATABASE_URL",
      value: emptyDatabaseUrl,
      reason: /migration/,
    },
    {
      name: "a bus that is away",
      service: "channel-gateway",
      variable: "PARLEY_NATS_URL",
      value: "nats://127.0.0.1:1",
      reason: /NATS|bus/,
    },
  ];
}

const reasonMs = 120_000;
const program = `fetch("http://127.0.0.1:8080/startupz").then(async (r) => console.log(r.status, await r.text()))`;

/** Resolves with what was wrong, one line each. `answers` sends a message and rejects without an answer. */
export async function checkStart(
  kubectl: Kubectl,
  start: HeldBackStart,
  answers: () => Promise<void>,
): Promise<{ reason: string; problems: string[] }> {
  const deployment = `deployment/${start.service}`;
  const before = new Set((await ofService(kubectl, start.service)).map(({ name }) => name));
  await kubectl.run(["set", "env", deployment, `--containers=${start.service}`, `${start.variable}=${start.value}`]);
  const problems: string[] = [];
  let reason = "";
  try {
    reason = await startupReason(kubectl, start, before);
    if (!start.reason.test(reason)) problems.push(`/startupz says "${reason}"`);
    const ended = await kubectl
      .run(["rollout", "status", deployment, "--timeout=10s"])
      .then(() => true)
      .catch((error: unknown) => {
        if (error instanceof KubectlError && /timed out/.test(error.stderr)) return false;
        throw error;
      });
    if (ended) problems.push("the rollout has ended");
    const old = (await ofService(kubectl, start.service)).filter(({ name }) => before.has(name));
    const serving = old.filter(({ isReady, isDeleted }) => isReady && !isDeleted).length;
    if (serving < before.size) problems.push(`${serving} of ${before.size} old pods serve`);
    await answers().catch((error: unknown) => problems.push(`no answer during the rollout: ${String(error)}`));
  } finally {
    await kubectl.run(["rollout", "undo", deployment]);
    await untilComplete(kubectl);
  }
  return { reason, problems: problems.map((problem) => `${start.name}: ${problem}`) };
}

async function ofService(kubectl: Kubectl, service: ServiceName) {
  return (await listPods(kubectl)).filter(({ app }) => app === service);
}

/** The text of `/startupz` of the new pod, as soon as it is the expected one. Resolves with the last one when that takes too long. */
async function startupReason(kubectl: Kubectl, start: HeldBackStart, old: ReadonlySet<string>): Promise<string> {
  let reason = "no new pod";
  for (const deadline = performance.now() + reasonMs; performance.now() < deadline; await delay(1_000)) {
    const pod = (await ofService(kubectl, start.service)).find(({ name }) => !old.has(name));
    if (pod === undefined) continue;
    reason = await kubectl
      .run(["exec", pod.name, "--container", start.service, "--", "node", "--eval", program])
      .then((text) => text.trim(), String);
    if (reason.startsWith("503 ") && start.reason.test(reason)) break;
  }
  return reason;
}
