// infra/nats/nats.conf says what the registry says, and carries no password.

import assert from "node:assert/strict";
import { test } from "node:test";

import { natsPermissions, roles } from "@parley/contracts";

import { natsConf, passwordVariable } from "../../infra/nats/conf.ts";
import { read } from "./support/repository.ts";

const conf = read("infra/nats/nats.conf");

test("nats.conf is not stale: `npm run docs` writes it anew", () => {
  assert.equal(conf, natsConf("parley"));
});

test("every role has a user whose password comes from the environment", () => {
  const users = [...conf.matchAll(/user: "([^"]+)"\n\s+password: (\S+)/g)].map((match) => [match[1], match[2]]);
  assert.deepEqual(
    users,
    roles.map((role) => [role, `$${passwordVariable(role)}`]),
  );
});

test("no role is without a limit on what it says and hears", () => {
  const limits = [...conf.matchAll(/(publish|subscribe): \{\s*(allow|deny)/g)];
  assert.equal(limits.length, roles.length * 2);
  for (const role of roles) assert.notEqual(natsPermissions(role, "parley").subscribe.length, 0);
});
