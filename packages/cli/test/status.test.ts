import assert from "node:assert/strict";
import { test } from "node:test";

import type { ReplicaReport } from "@parley/contracts";
import type { ReplicaState } from "@parley/local";

import { plain } from "../src/io/io.ts";
import { viewOf } from "../src/cluster/status.ts";
import { table } from "../src/tables/format.ts";
import { statusText } from "../src/tables/status.ts";

const leader: ReplicaReport = {
  service: "agent-core",
  replica: "agent-core-1",
  pid: 7,
  role: "leader",
  epoch: 3,
  ready: true,
  uptimeSeconds: 3_700,
  rssMib: 99.6,
  version: "1",
  details: {},
};
const state = (name: string): ReplicaState => ({
  service: "agent-core",
  name,
  number: 1,
  process: null,
  ready: false,
  startedAt: null,
  restarts: 4,
  httpPort: null,
  healthPort: null,
});
const status = (...replicas: ReplicaReport[]) => ({ version: "1", model: null, replicas });

test("lists an unresponsive replica of the supervisor as down and as a problem", () => {
  const view = viewOf(status(leader), null, [state("agent-core-1"), state("agent-core-2")], []);
  assert.deepEqual(
    view.replicas.map(({ replica, role, restarts }) => [replica, role, restarts]),
    [
      ["agent-core-1", "leader", 4],
      ["agent-core-2", "down", 4],
    ],
  );
  assert.deepEqual([view.healthy, view.problems], [false, ["agent-core-2 does not answer"]]);
});

test("accepts one leader, and reports none or two as a problem", () => {
  const healthy = (...replicas: ReplicaReport[]): boolean => viewOf(status(...replicas), null, [], []).healthy;
  assert.equal(healthy(leader), true);
  assert.equal(healthy({ ...leader, role: "standby" }), false);
  assert.equal(healthy(leader, { ...leader, replica: "agent-core-2" }), false);
  assert.equal(healthy({ ...leader, ready: false }), false);
});

test("prints a replica in one line, with a dash for unknown values", () => {
  const text = statusText(viewOf(status(leader), { waiting: 2, running: 1 }, [], []), plain);
  assert.match(text, /^healthy\n/);
  assert.match(text, /^queue {4}1 running, 2 waiting$/m);
  assert.match(text, /^agent-core +agent-core-1 +7 +leader +3 +yes +1h 1m +100 MiB +-$/m);
});

test("names a model that is called like its provider once, and indents the note about it", () => {
  const note = "the built-in rehearsal model: it follows scripts and does not understand text; set a key";
  const named = (provider: string, model: string) => ({ ...status(leader), model: { provider, model, note } });
  const text = statusText(viewOf(named("rehearsal", "rehearsal"), null, [], []), plain, 80);
  assert.match(text, /^model {4}rehearsal\n {9}the built-in .*\n {9}\S.* key$/m);
  assert.ok(text.split("\n").every((line) => line.length <= 80));
  assert.match(statusText(viewOf(named("anthropic", "x"), null, [], []), plain), /^model {4}x \(anthropic\)$/m);
});

test("shows every column of a replica in 80 columns and in 200, without the redundant service", () => {
  const gateway = { ...leader, service: "channel-gateway", replica: "channel-gateway-1", role: "active" } as const;
  const restarted = viewOf(status(leader, { ...gateway, epoch: null }), null, [], []);
  const view = { ...restarted, replicas: restarted.replicas.map((row) => ({ ...row, restarts: 12 })) };
  const narrow = statusText(view, plain, 80);
  assert.match(narrow, /^REPLICA .* RSS +RESTARTS$/m);
  assert.match(narrow, /^channel-gateway-1 +7 +active +- +yes +1h 1m +100 MiB +12$/m);
  assert.ok(
    narrow.split("\n").every((line) => line.length <= 80),
    narrow,
  );
  assert.match(statusText(view, plain, 200), /^channel-gateway +channel-gateway-1 .* 12$/m);
});

test("puts the columns that do not fit on lines below their row, and cuts off nothing", () => {
  const rows = [
    ["NAME", "STATE", "ID"],
    ["a", "idle", "0123456789"],
    ["東京", "running", "1"],
  ];
  assert.equal(table(rows), "NAME  STATE    ID\na     idle     0123456789\n東京  running  1");
  assert.equal(
    table(rows, 20),
    ["NAME  STATE", "  ID", "a     idle", "  0123456789", "東京  running", "  1"].join("\n"),
  );
  assert.equal(table(rows, 4), table(rows, 8));
});
