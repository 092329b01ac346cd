// The network policies follow from the declared call graph, and the call graph from what the code connects to.

import assert from "node:assert/strict";
import { test } from "node:test";

import { services } from "@parley/contracts";

import { healthPort, mayConnect, serverLinks, type PodName } from "../../infra/network/call-graph.ts";
import { policyFiles } from "../../infra/network/policies.ts";
import { parseFile } from "./support/manifests.ts";
import { read, secretVariables } from "./support/repository.ts";

test("has current policy files: `npm run docs` generates them", () => {
  for (const [path, text] of policyFiles()) assert.equal(read(path), text, path);
});

test("names as callers of a server exactly the pods that get its login", () => {
  const logins = { postgres: "DATABASE_URL", redis: "REDIS_URL", nats: "PARLEY_NATS_URL" } as const;
  for (const { server, from } of serverLinks)
    assert.deepEqual(from.toSorted(), secretVariables[logins[server]]?.toSorted(), server);
});

test("allows no connection between services, and other pods only the entrance", () => {
  const pods: PodName[] = [...services, "migrate", "postgres", "redis", "nats"];
  const ports = [healthPort, 8787, 5432, 6379, 4222, 8222];
  const allowed = (from: PodName | null) =>
    pods.flatMap((to) => ports.filter((port) => mayConnect(from, to, port)).map((port) => `${to}:${port}`));
  assert.deepEqual(allowed(null), ["channel-gateway:8787"]);
  for (const from of services)
    for (const target of allowed(from)) assert.doesNotMatch(target, new RegExp(`^(?:${services.join("|")}):`));
  for (const from of ["postgres", "redis", "nats"] as const) assert.deepEqual(allowed(from), [], from);
});

test("adds a place of names for NodeLocal DNSCache and for OpenShift, next to that of the base", () => {
  const [local, openshift] = ["node-local-dns", "openshift-dns"].map((name) =>
    parseFile(`k8s/components/${name}/network-policy.yaml`),
  );
  assert.match(JSON.stringify(local), /"cidr":"169\.254\.20\.10\/32".*"UDP","port":53/);
  assert.match(JSON.stringify(openshift), /"openshift-dns".*"UDP","port":5353/);
});
