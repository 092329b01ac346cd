// infra/nats/nats.conf matches the registry of subjects and contains no password.

import assert from "node:assert/strict";
import { test } from "node:test";

import { natsPermissions, roles } from "@parley/contracts";

import { natsConf, publicKeyVariable } from "../../infra/nats/conf.ts";
import { read } from "./support/repository.ts";

const conf = read("infra/nats/nats.conf");

test("nats.conf is current: `npm run docs` generates it", () => {
  assert.equal(conf, natsConf("parley"));
});

test("takes every role's public key from the environment, and no password", () => {
  const users = [...conf.matchAll(/# (\S+)\n\s+nkey: (\S+)/g)].map((match) => [match[1], match[2]]);
  assert.deepEqual(
    users,
    roles.map((role) => [role, `$${publicKeyVariable(role)}`]),
  );
  assert.doesNotMatch(conf, /^\s*(?:password|user):/m);
});

test("limits what every role may publish and subscribe to", () => {
  const limits = [...conf.matchAll(/(publish|subscribe): \{\s*(allow|deny)/g)];
  assert.equal(limits.length, roles.length * 2);
  for (const role of roles) assert.notEqual(natsPermissions(role, "parley").subscribe.length, 0);
});

test("answers monitoring requests only on loopback", () => {
  assert.match(conf, /^http: 127\.0\.0\.1:8222$/m);
  // A probe of the kubelet comes from the node, so it runs inside of the container.
  assert.doesNotMatch(read("k8s/overlays/dev/nats.yaml"), /httpGet|containerPort: 8222/);
});
