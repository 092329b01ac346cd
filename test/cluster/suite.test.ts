// The suite for clusters against a fake of kubectl, with the real manifests: what it applies, finds and deletes.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { kubernetesTools } from "../deploy/support/kubernetes-tools.ts";
import { at } from "../deploy/support/manifests.ts";
import { CannotRun, parseOptions } from "./options.ts";
import { runSuite } from "./suite.ts";
import { FakeCluster } from "./support/fake-cluster.ts";

const tools = await kubernetesTools();
const namespace = "parley-test-abc";
const options = parseOptions([
  "--context",
  "here",
  "--namespace",
  namespace,
  "--phases",
  "reachability",
  "--public-address",
  "1.1.1.1:443",
]);
const kustomize = (folder: string): string =>
  execFileSync(tools?.kubectl ?? "", ["kustomize", folder], { encoding: "utf8", maxBuffer: 64e6 });

type Changes = Partial<ConstructorParameters<typeof FakeCluster>[0]>;

async function runWith(
  changes: Changes,
  given = options,
): Promise<{ cluster: FakeCluster; lines: string[]; problems: string[] }> {
  const cluster = new FakeCluster({ context: "here", namespace, kustomize, ...changes });
  const lines: string[] = [];
  const { problems } = await runSuite(
    cluster,
    given,
    (line) => lines.push(line),
    () => undefined,
  );
  return { cluster, lines, problems };
}

const isPolicy = (object: Record<string, unknown>, name: string) =>
  object["kind"] === "NetworkPolicy" && at(object, "metadata", "name") === name;

describe("the suite for clusters", { skip: tools === undefined ? "kubectl is not available" : false }, () => {
  test("finds exactly the call graph in the applied policies, and deletes the namespace", async () => {
    const { cluster, lines, problems } = await runWith({});
    assert.deepEqual(problems, []);
    // 8 pods of services, 3 of servers and 2 probes; each tries the 14 ports of all pods and 3 addresses outside.
    assert.match(
      lines.find((line) => line.startsWith("reachability")) ?? "",
      /^reachability: 221 attempts from 13 pods/,
    );
    assert.deepEqual([...cluster.namespaces], ["default"]);
  });

  test("names each connection when the network does not enforce policies", async () => {
    const { problems } = await runWith({ enforces: false });
    assert.ok(problems.includes("reachability: tool-runner-0 reaches postgres-0:5432, which no policy allows"));
    assert.ok(problems.includes("reachability: probe-unlabelled reaches redis-0:6379, which no policy allows"));
    assert.ok(problems.includes("reachability: store-0 reaches 1.1.1.1:443, which no policy allows"));
    assert.match(problems.at(-1) ?? "", /does the cluster's network plugin enforce NetworkPolicy\?$/);
  });

  test("names the connection when one policy is missing", async () => {
    const alter = (object: Record<string, unknown>) =>
      isPolicy(object, "agent-core-to-redis")
        ? { ...object, spec: { podSelector: { matchLabels: { none: "" } } } }
        : object;
    const { problems } = await runWith({ alter });
    assert.deepEqual(problems, [
      "reachability: agent-core-0 does not reach redis-0:6379, which a policy allows",
      "reachability: agent-core-1 does not reach redis-0:6379, which a policy allows",
    ]);
  });

  test("names the connections when one policy allows too much", async () => {
    const alter = (object: Record<string, unknown>) =>
      isPolicy(object, "people-to-channel-gateway")
        ? { ...object, spec: { ...(object["spec"] as object), ingress: [{}] } }
        : object;
    const { problems } = await runWith({ alter });
    assert.deepEqual(problems, [
      "reachability: probe-unlabelled reaches channel-gateway-0:8080, which no policy allows",
      "reachability: probe-unlabelled reaches channel-gateway-1:8080, which no policy allows",
      "reachability: 2 connections that no policy allows: does the cluster's network plugin enforce NetworkPolicy?",
    ]);
  });

  test("reports a target on which nothing listens, because attempts there prove nothing", async () => {
    const alter = (object: Record<string, unknown>) =>
      object["kind"] === "StatefulSet" && at(object, "metadata", "name") === "redis"
        ? (JSON.parse(
            JSON.stringify(object).replaceAll('"containerPort":6379', '"containerPort":6380'),
          ) as typeof object)
        : object;
    const { problems } = await runWith({ alter });
    assert.ok(
      problems.some((line) => /redis-0:6379: nothing listens/.test(line)),
      problems.join("\n"),
    );
  });

  const refusals: [name: string, changes: Changes, message: RegExp][] = [
    ["the context is unknown", { context: "elsewhere" }, /no context here: it has other, elsewhere/],
    ["the cluster is too old", { minor: "29+" }, /has Kubernetes v1\.29\+\.2; the manifests need 1\.30 or newer/],
    [
      "rights are missing",
      { denied: ["create secrets", "create pods --subresource=exec"] },
      /no right to: create secrets; create pods --subresource=exec/,
    ],
    [
      "the namespace exists",
      { existingNamespaces: [namespace] },
      /namespace parley-test-abc cannot be created.*already exists/,
    ],
    [
      "images are missing",
      { missingImages: ["parley/store:0.1.0", "redis:8"] },
      /do not have these images and cannot pull them: parley\/store:0\.1\.0, redis:8\. Load them/,
    ],
  ];
  for (const [name, changes, message] of refusals) {
    test(`refuses to run, and leaves nothing of its own, when ${name}`, async () => {
      const cluster = new FakeCluster({ context: "here", namespace, kustomize, ...changes });
      const before = new Set(cluster.namespaces);
      await assert.rejects(
        runSuite(
          cluster,
          options,
          () => undefined,
          () => undefined,
        ),
        (error) => error instanceof CannotRun && message.test(error.message),
      );
      assert.deepEqual(cluster.namespaces, before);
    });
  }

  test("uses only command lines that kubectl accepts", async () => {
    const { cluster } = await runWith({});
    const kinds = new Map(cluster.commands.map((args) => [`${args[0]} ${args[1]?.split("/")[0]}`, args]));
    const server = ["--server", "http://127.0.0.1:1", "--request-timeout=1s"];
    for (const args of [...kinds.values(), ...otherCommands].filter(
      ([verb]) => verb !== "kustomize" && verb !== "config",
    )) {
      const end = args.indexOf("--");
      const all = end === -1 ? [...args, ...server] : [...args.slice(0, end), ...server, ...args.slice(end)];
      const { stderr } = spawnSync(tools?.kubectl ?? "", all, {
        encoding: "utf8",
        input:
          '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}]}',
        env: { PATH: process.env["PATH"], KUBECONFIG: "/dev/null" },
      });
      assert.match(stderr, /connection refused|refused - did you specify/, `kubectl ${all.join(" ")}: ${stderr}`);
    }
  });
});

/** Commands of the phases that need running services. */
const otherCommands: string[][] = [
  ["set", "env", "deployment/store", "--containers=store", "A=b"],
  ["rollout", "status", "deployment/store", "--timeout=10s"],
  ["rollout", "undo", "deployment/store"],
  ["rollout", "restart", "deployment/store"],
  ["scale", "deployment/store", "--replicas=4"],
  ["delete", "pod", "nats-0", "--wait", "--grace-period=0", "--force"],
  ["wait", "--for=delete", "pod/store-0", "--timeout=300s"],
  ["create", "--raw", "/api/v1/namespaces/x/pods/y/eviction", "--filename", "-"],
  ["port-forward", "pod/store-0", "--address", "127.0.0.1", ":8787", ":8080"],
  ["exec", "deployment/tool-runner", "--container", "tool-runner", "--", "mkdir", "-p", "/workspace/effects"],
];
