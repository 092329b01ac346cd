import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inboxReady, natsPermissions, paramsOf, registry, roles, store, subjectOf, toolAlive } from "@parley/contracts";
import fc from "fast-check";
import { protocolDocument } from "../src/docs/protocol.ts";
import { nameSharedSchemas, type Json } from "../src/docs/shared-schemas.ts";

test("docs/protocol.md matches the registry", () => {
  const written = readFileSync(new URL("../../../docs/protocol.md", import.meta.url), "utf8");
  assert.equal(written, protocolDocument(), "stale: run npm run docs");
});

test("nameSharedSchemas preserves every schema when its references are resolved", () => {
  const words = { enum: Array.from({ length: 20 }, (_, n) => `word-${n}`) };
  const part = {
    type: "object",
    properties: { type: { const: "note" }, words, more: { anyOf: [words, { type: "null" }] } },
  };
  const whole = { type: "object", properties: { parts: { type: "array", items: part }, last: part, state: words } };
  const roots: Json[] = [whole, { type: "object", properties: { whole, state: { type: "string" } } }, words];
  const { roots: named, shared } = nameSharedSchemas(roots, new Map([[JSON.stringify(words), "Note"]]));

  assert.deepEqual([...shared.keys()].toSorted(), ["Note", "Note2", "Whole"]);
  const followed = (value: Json): Json => {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map(followed);
    const entries = Object.entries(value);
    const [key, to] = entries[0] ?? [];
    if (key === "$ref" && typeof to === "string") return followed(shared.get(to.slice(1)) ?? `there is no ${to}`);
    return Object.fromEntries(entries.map(([name, each]) => [name, followed(each)]));
  };
  assert.deepEqual(named.map(followed), roots);
  assert.equal(JSON.stringify([named, ...shared.values()]).split('"word-7"').length, 2, "contained once");
});

test("registry has no two entries with the same subject", () => {
  const subjects = registry.map((contract) => contract.subject);
  assert.equal(new Set(subjects).size, subjects.length);
});

test("subjectOf encodes any placeholder value as one token", () => {
  fc.assert(
    fc.property(
      fc.string({ minLength: 1, unit: "binary" }).filter((call) => call !== "*" && call.isWellFormed()),
      (call) => {
        const subject = subjectOf(toolAlive, "parley", { call });
        assert.match(subject, /^parley\.tool\.alive\.[^.*>\s]+$/);
        assert.deepEqual(paramsOf(toolAlive, "parley", subject), { call }, "can be decoded");
      },
    ),
  );
});

test("subjectOf uses a wildcard when a placeholder is missing", () => {
  assert.equal(subjectOf(toolAlive, "ns"), "ns.tool.alive.*");
  assert.equal(subjectOf(inboxReady, "ns"), "ns.inbox.ready");
});

test("only clients of the store may send requests to it, and no role may read other replies", () => {
  for (const role of roles) {
    const { publish, subscribe } = natsPermissions(role, "parley");
    const commit = subjectOf(store.stepCommit, "parley");
    assert.equal(publish.includes(commit), role === "agent-core", `${role} and ${commit}`);
    assert.deepEqual(
      subscribe.filter((subject) => subject.startsWith("_INBOX_")),
      [`_INBOX_${role.replaceAll("-", "_")}.>`],
    );
  }
});

test("the gateway may read the tool catalog, and may only stop background processes", () => {
  const { publish } = natsPermissions("channel-gateway", "parley");
  assert.deepEqual(
    publish.filter((subject) => subject.startsWith("parley.tool.")),
    ["parley.tool.catalog", "parley.tool.stop.*"],
  );
});

test("only the gateway may mark a document as trusted", () => {
  const vouch = subjectOf(store.documentRevise, "parley");
  const able = roles.filter((role) => natsPermissions(role, "parley").publish.includes(vouch));
  assert.deepEqual(able, ["channel-gateway"]);
});

test("lets the tool-runner request of the store what a call needs, and little without a grant", () => {
  const { publish } = natsPermissions("tool-runner", "parley");
  const allowed = publish.filter((subject) => subject.startsWith("parley.store."));
  assert.deepEqual(allowed, [
    "parley.store.blob.commit",
    "parley.store.blob.put",
    "parley.store.call.blob.begin",
    "parley.store.call.blob.get",
    "parley.store.call.document.get",
    "parley.store.call.document.list",
    "parley.store.call.document.put",
    "parley.store.call.settle",
    "parley.store.checkpoint.files",
    "parley.store.checkpoint.track",
    "parley.store.checkpoint.unreferenced",
    "parley.store.mcp.switches",
    "parley.store.process.begin",
    "parley.store.process.end",
    "parley.store.process.renew",
    "parley.store.process.told",
    "parley.store.question.look",
    "parley.store.question.raise",
    "parley.store.rewind.begin",
    "parley.store.rewind.document",
    "parley.store.rewind.update",
    "parley.store.step.claim",
  ]);
  const shows = (input: object) => ["grant", "by", "key", "rewind"].some((field) => field in input);
  const without = registry.filter(
    (each) =>
      each.kind === "request" &&
      allowed.includes(subjectOf(each, "parley")) &&
      !shows((each.input as unknown as { shape: object }).shape),
  );
  assert.deepEqual(without.map(({ subject }) => subject).sort(), [
    "store.blob.commit",
    "store.blob.put",
    "store.checkpoint.unreferenced",
    "store.mcp.switches",
  ]);
});
