// The component that has tool-runners with background commands removed last, against a fake of the API server.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";

import { metricCatalog } from "@parley/chassis";
import { Cleanup } from "@parley/testing";

import { annotation, commandsIn, podsOf, updateCosts } from "../../k8s/components/deletion-cost/deletion-cost.mjs";
import { at, parseFile } from "./support/manifests.ts";
import { read } from "./support/repository.ts";

const cleanup = new Cleanup();
const namespace = "parley";
let token = "first";
let url = "";
interface Stored {
  ip?: string;
  annotations?: Record<string, string>;
  deleted?: boolean;
}
const stored = new Map<string, Stored>();
const patched: string[] = [];

/** As an API server: only what the Role of the component allows. */
async function answer(request: IncomingMessage): Promise<[status: number, body: unknown]> {
  if (request.headers.authorization !== `Bearer ${token}`) return [401, { message: "Unauthorized" }];
  const { pathname, searchParams } = new URL(request.url ?? "", url);
  const base = `/api/v1/namespaces/${namespace}/pods`;
  if (request.method === "GET" && pathname === base) {
    assert.equal(searchParams.get("labelSelector"), "app.kubernetes.io/name=tool-runner");
    const items = [...stored].map(([name, { ip, annotations, deleted }]) => ({
      metadata: { name, annotations, ...(deleted === true ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) },
      status: { podIP: ip },
    }));
    return [200, { items }];
  }
  const [name = "", subresource] = pathname.slice(base.length + 1).split("/");
  const pod = stored.get(name);
  if (request.method !== "PATCH" || pod === undefined) return [404, { message: "not found" }];
  if (subresource !== "status") return [403, { message: "cannot patch resource pods" }];
  assert.equal(request.headers["content-type"], "application/merge-patch+json");
  let body = "";
  for await (const chunk of request) body += String(chunk);
  const patch = JSON.parse(body) as { metadata: { annotations: Record<string, string | null> } };
  assert.deepEqual(Object.keys(patch), ["metadata"]);
  assert.deepEqual(Object.keys(patch.metadata), ["annotations"]);
  patched.push(name);
  for (const [key, value] of Object.entries(patch.metadata.annotations)) {
    const { [key]: _, ...rest } = pod.annotations ?? {};
    pod.annotations = value === null ? rest : { ...rest, [key]: value };
  }
  return [200, {}];
}

before(async () => {
  const server = createServer((request, response) => {
    void answer(request).then(([status, body]) => response.writeHead(status).end(JSON.stringify(body)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup.add(async () => void server.close());
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => cleanup[Symbol.asyncDispose]());

const metrics = (commands: number) =>
  `# TYPE parley_background_commands gauge\nparley_background_commands{service="tool-runner"} ${commands}\n`;

test("reads the metric that the tool-runner exports", () => {
  assert.ok("parley_background_commands" in metricCatalog);
  assert.equal(commandsIn(metrics(3)), 3);
  assert.equal(commandsIn("parley_background_commands 0\n"), 0);
  assert.equal(commandsIn("parley_other 1\n"), undefined);
});

test("gives a tool-runner the number of its commands as cost, and removes it when they have ended", async () => {
  for (const name of ["busy", "idle", "silent", "ended", "new", "leaving"])
    stored.set(name, name === "new" ? {} : { ip: `10.0.0.${stored.size + 1}`, deleted: name === "leaving" });
  stored.set("ended", { ip: "10.0.0.4", annotations: { [annotation]: "2", other: "kept" } });
  stored.set("silent", { ip: "10.0.0.3", annotations: { [annotation]: "1" } });
  const commands: Record<string, number> = { "10.0.0.1": 2, "10.0.0.2": 0, "10.0.0.4": 0, "10.0.0.6": 9 };
  const metricsOf = async (ip: string): Promise<string> => {
    const count = commands[ip];
    if (count === undefined) throw new Error("connection refused");
    return metrics(count);
  };
  const pods = podsOf({ url, namespace, token: () => token });
  assert.deepEqual(
    await updateCosts(pods, metricsOf),
    new Map([
      ["busy", 2],
      ["ended", 0],
    ]),
  );
  assert.deepEqual(stored.get("busy")?.annotations, { [annotation]: "2" });
  assert.deepEqual(stored.get("ended")?.annotations, { other: "kept" });
  assert.deepEqual(stored.get("silent")?.annotations, { [annotation]: "1" });
  assert.deepEqual(patched, ["busy", "ended"]);
  // Nothing has changed, so nothing is written; and a replaced token is used.
  token = "second";
  assert.deepEqual(await updateCosts(pods, metricsOf), new Map());
});

test("updates the other tool-runners while one does not answer, and reports a refused change", async () => {
  stored.clear();
  patched.length = 0;
  for (const name of ["hanging", "busy", "gone"]) stored.set(name, { ip: `10.0.1.${stored.size + 1}` });
  const released = Promise.withResolvers<string>();
  const busyWritten = Promise.withResolvers<undefined>();
  const pods = podsOf({ url, namespace, token: () => token });
  const updating = updateCosts(
    {
      list: () => pods.list(),
      async annotate(name, cost) {
        if (name === "gone") stored.delete(name);
        await pods.annotate(name, cost).finally(() => name === "busy" && busyWritten.resolve(undefined));
      },
    },
    (ip) => (ip === "10.0.1.1" ? released.promise : Promise.resolve(metrics(1))),
  );
  const refused = assert.rejects(updating, /responded 404/);
  await busyWritten.promise;
  assert.deepEqual(patched, ["busy"]);
  released.reject(new Error("timeout"));
  await refused;
});

test("may list the pods of its namespace and patch their status and nothing else, and nobody may connect to it", () => {
  const objects = parseFile("k8s/components/deletion-cost/deletion-cost.yaml");
  const only = (kind: string, name: string) =>
    objects.find((each) => at(each, "kind") === kind && at(each, "metadata", "name") === name);
  assert.deepEqual(at(only("Role", "deletion-cost"), "rules"), [
    { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
    { apiGroups: [""], resources: ["pods/status"], verbs: ["patch"] },
  ]);
  const ingress = objects.filter((each) => at(each, "spec", "ingress") !== undefined);
  assert.deepEqual(
    ingress.map((each) => at(each, "spec", "podSelector", "matchLabels", "app.kubernetes.io/name")),
    ["tool-runner"],
  );
  const pod = at(only("Deployment", "deletion-cost"), "spec", "template", "spec");
  assert.equal(at(pod, "containers", 0, "image"), /image: (parley\/store:\S+)/.exec(read("k8s/base/store.yaml"))?.[1]);
});
