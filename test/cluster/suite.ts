// The phases of `npm run test:cluster`, against a cluster that kubectl reaches.
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { Cleanup } from "@parley/testing";
import { describeScene, runLoadScenes, type LoadCluster } from "../chaos/load/run.ts";
import { apply, createNamespace, deleteNamespace, deploy, listPods } from "./deployment.ts";
import type { Kubectl } from "./kubectl.ts";
import { openLoadCluster, type ClusterAccess } from "./load-cluster.ts";
import { deployed, imageOf, overlay, probePod, secretValue, type Deployed } from "./objects.ts";
import type { ClusterOptions } from "./options.ts";
import { preflight } from "./preflight.ts";
import { judge, namesProblems, tryAll } from "./reachability.ts";
import { checkStart, heldBackStarts } from "./starts.ts";

const root = resolve(import.meta.dirname, "../..");

export interface SuiteResult {
  /** One line each. */
  problems: string[];
}

/**
 * Rejects with CannotRun when the cluster cannot be used. Deletes what it made, also when it fails. `created` is called when the namespace
 * exists: from then on an interruption must delete it.
 */
export async function runSuite(
  kubectl: Kubectl,
  options: ClusterOptions,
  say: (line: string) => void,
  created: () => void,
): Promise<SuiteResult> {
  say(`Kubernetes ${await preflight(kubectl, options.context)}`);
  const { objects, token } = await objectsFor(kubectl, options);
  await createNamespace(kubectl, objects.namespace);
  created();
  const access: ClusterAccess = {
    kubectl,
    namespace: options.namespace,
    token,
    databasePassword: secretValue(objects.secrets, "parley-dev-postgres", "superuser"),
  };
  try {
    say(`applying ${overlay} into the namespace ${options.namespace}`);
    const begin = performance.now();
    await deploy(kubectl, objects);
    say(`complete after ${Math.round((performance.now() - begin) / 1_000)} s`);
    const problems: string[] = [];
    if (options.phases.includes("reachability")) problems.push(...(await reachability(kubectl, objects, options, say)));
    if (options.phases.includes("starts")) problems.push(...(await starts(access, objects, say)));
    if (options.phases.includes("scenes")) problems.push(...(await scenes(access, options, say)));
    return { problems };
  } finally {
    if (options.keep) say(`the namespace ${options.namespace} remains; its token is PARLEY_TOKEN=${token}`);
    else {
      say(`deleting the namespace ${options.namespace}`);
      await deleteNamespace(kubectl, options.namespace);
    }
  }
}

/** The manifests as kubectl renders them, and secrets that nobody else has. */
async function objectsFor(kubectl: Kubectl, options: ClusterOptions): Promise<{ objects: Deployed; token: string }> {
  const rendered = await kubectl.run(["kustomize", join(root, overlay)]);
  // Without the keys of models: the rehearsal model answers.
  const env = { PATH: process.env["PATH"] };
  const program = join(root, overlay, "make-secrets.mjs");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], { env });
  const token = /^PARLEY_TOKEN=(\S+)$/m.exec(stderr)?.[1];
  if (token === undefined) throw new Error("make-secrets.mjs printed no token");
  return { objects: deployed(rendered, stdout, options), token };
}

const probes = { migrate: "probe-migrate", unlabelled: "probe-unlabelled" };
const probePodMs = 120_000;

async function reachability(
  kubectl: Kubectl,
  { rest }: Deployed,
  { namespace, publicAddress }: ClusterOptions,
  say: (line: string) => void,
): Promise<string[]> {
  const image = imageOf(rest, "store");
  await apply(kubectl, [
    probePod(probes.migrate, "migrate", image, namespace),
    probePod(probes.unlabelled, null, image, namespace),
  ]);
  const names = Object.values(probes).map((name) => `pod/${name}`);
  await kubectl.run(["wait", "--for=condition=Ready", ...names, `--timeout=${probePodMs / 1_000}s`], {
    timeoutMs: probePodMs + 10_000,
  });
  const pods = await listPods(kubectl);
  const attempts = await tryAll(kubectl, pods, publicAddress);
  const { judged, problems } = judge(attempts);
  const reached = attempts.filter(({ isReached }) => isReached).length;
  const from = new Set(attempts.map((attempt) => attempt.from.name)).size;
  say(`reachability: ${attempts.length} attempts from ${from} pods, ${reached} connected, ${judged} judged`);
  problems.push(...(await namesProblems(kubectl, pods)));
  await kubectl.run(["delete", ...names, "--grace-period=0", "--force", "--wait"]);
  return problems.map((problem) => `reachability: ${problem}`);
}

async function starts(access: ClusterAccess, { secrets }: Deployed, say: (line: string) => void): Promise<string[]> {
  await using cleanup = new Cleanup();
  const cluster = await openLoadCluster(cleanup, access);
  await untilAnswer(cluster);
  await cluster.query("CREATE DATABASE parley_empty OWNER parley_store");
  const url = new URL(secretValue(secrets, "parley-store", "database-url"));
  url.pathname = "/parley_empty";
  const problems: string[] = [];
  for (const start of heldBackStarts(url.href)) {
    const result = await checkStart(access.kubectl, start, () => answer(cluster));
    say(`start of ${start.service} with ${start.name}: ${result.reason}`);
    problems.push(...result.problems.map((problem) => `start: ${problem}`));
  }
  return problems;
}

async function scenes(access: ClusterAccess, options: ClusterOptions, say: (line: string) => void): Promise<string[]> {
  return runLoadScenes({
    ...options,
    async open(cleanup) {
      const cluster = await openLoadCluster(cleanup, access);
      await untilAnswer(cluster);
      return cluster;
    },
    report: (result) => say(describeScene(result)),
    skip: ({ name }, reason) => say(`${name}: not played: ${reason}`),
  });
}

const answerMs = 60_000;

async function answer({ url, token }: Pick<LoadCluster, "url" | "token">): Promise<void> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "parley", user: "suite", messages: [{ role: "user", content: "say: it works" }] }),
    signal: AbortSignal.timeout(answerMs),
  });
  const text = await response.text();
  if (!response.ok || !text.includes("it works")) throw new Error(`${response.status}: ${text.slice(0, 200)}`);
}

/** The front needs its first probes of the gateways. */
async function untilAnswer(cluster: LoadCluster): Promise<void> {
  for (const deadline = performance.now() + answerMs; ; await delay(500)) {
    try {
      return await answer(cluster);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}
