// The metrics of a process: bounded labels, first values, and certificates.
import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { Cleanup, temporaryFolder, tlsFixtures } from "@parley/testing";
import { exportCertificateExpiry } from "../src/certificates.ts";
import { createMetrics } from "../src/metrics.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const lines = async (metrics: ReturnType<typeof createMetrics>, name: string) =>
  (await metrics.registry.metrics()).split("\n").filter((line) => new RegExp(`^${name}[{ ]`).test(line));

test("limits the values of a label, and counts the others together", async () => {
  const metrics = createMetrics("channel-gateway");
  for (let number = 0; number < 500; number++)
    metrics.count("parley_http_requests_total", { route: `/${number}`, status: "2xx" });
  const all = await lines(metrics, "parley_http_requests_total");
  assert.equal(all.length, 121);
  assert.ok(all.some((line) => line.includes('route="other"') && line.endsWith(" 380")));
});

test("starts counters with closed labels at 0, and has only the metrics of its service", async () => {
  const metrics = createMetrics("agent-core");
  assert.equal((await lines(metrics, "parley_turns_total")).filter((line) => line.endsWith(" 0")).length, 4);
  assert.deepEqual(await lines(metrics, "parley_store_requests_total"), []);
  metrics.count("parley_store_requests_total", { verb: "x", outcome: "ok" });
  assert.deepEqual(await lines(metrics, "parley_store_requests_total"), []);
});

test("starts an expected counter at 0 for all values of its closed labels, and keeps its counts", async () => {
  const metrics = createMetrics("channel-gateway");
  metrics.count("parley_outbound_total", { channel: "irc", outcome: "sent" });
  metrics.expect("parley_outbound_total", { channel: "irc" });
  const all = await lines(metrics, "parley_outbound_total");
  assert.equal(all.length, 6);
  assert.equal(all.filter((line) => line.includes('channel="irc"') && line.endsWith(" 0")).length, 5);
});

test("exports no time before one was measured", async () => {
  const metrics = createMetrics("store");
  assert.deepEqual(await lines(metrics, "parley_cluster_measured_timestamp_seconds"), []);
  metrics.set("parley_cluster_measured_timestamp_seconds", 5);
  assert.equal((await lines(metrics, "parley_cluster_measured_timestamp_seconds")).length, 1);
});

test("exports no free space while a tool-runner waits for its folders, which is no full disk", async () => {
  const metrics = createMetrics("tool-runner");
  assert.deepEqual(await lines(metrics, "parley_workspace_disk_free_bytes"), []);
  metrics.collect("parley_workspace_disk_free_bytes", () => metrics.set("parley_workspace_disk_free_bytes", 7));
  assert.match((await lines(metrics, "parley_workspace_disk_free_bytes")).join(""), / 7$/);
});

test("reports all other metrics when one cannot be read, and none that was forgotten", async () => {
  const metrics = createMetrics("store");
  metrics.collect("parley_schema_version", () => Promise.reject(new Error("gone")));
  metrics.set("parley_outbox_oldest_seconds", 3);
  assert.equal((await lines(metrics, "parley_outbox_oldest_seconds")).length, 1);
  metrics.forget("parley_outbox_oldest_seconds");
  assert.deepEqual(await lines(metrics, "parley_outbox_oldest_seconds"), []);
});

test("exports when the first certificate of a link expires, also after its file changed", async () => {
  const metrics = createMetrics("store");
  const caFile = join(await temporaryFolder(cleanup), "ca.pem");
  await copyFile(tlsFixtures.ca, caFile);
  exportCertificateExpiry(metrics, "nats", { caFile, certFile: tlsFixtures.client.cert });
  const [line = ""] = await lines(metrics, "parley_certificate_expiry_timestamp_seconds");
  assert.match(line, /link="nats"/);
  assert.ok(Number(line.split(" ").at(-1)) > Date.now() / 1_000);
  exportCertificateExpiry(metrics, "redis", {});
  assert.equal((await lines(metrics, "parley_certificate_expiry_timestamp_seconds")).length, 1);
});
