// Every alert, with its fault made for real in a cluster: the rules fire on the metrics during the fault, and clear on those after it.
// Only time is not real: waiting rows are made older, and promtool repeats the metrics for as long as a rule requires.
import assert from "node:assert/strict";
import { appendFile, copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { store } from "@parley/contracts";
import { debianBinary, sharedCacheDir } from "@parley/local";
import { Cleanup, pollUntil, tlsFixtures } from "@parley/testing";
import { waitingFor } from "./presets/support/fixture.ts";
import { startAlertCluster, type AlertCluster } from "./support/alert-cluster.ts";
import { scalingQueries } from "../deploy/support/manifests.ts";
import { assertFiresAndClears, assertValue, rules, type Scrape } from "./support/alert-replay.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());

const promtool = await debianBinary("promtool", "prometheus", sharedCacheDir).then(
  ({ path }) => path,
  () => undefined,
);

/** The alerts that a test of this file has fired and cleared. */
const shown = new Set<string>();

describe("alerts of a cluster", { skip: promtool === undefined ? "promtool is not available" : false }, () => {
  let cluster: AlertCluster["cluster"];
  let client: AlertCluster["client"];
  let links: AlertCluster["links"];
  let until: AlertCluster["until"];
  let whole: AlertCluster["whole"];
  let turn: AlertCluster["turn"];
  let query: AlertCluster["query"];
  let fixture: AlertCluster;

  before(async () => {
    fixture = await startAlertCluster(cleanup);
    ({ cluster, client, links, until, whole, turn, query } = fixture);
  });

  async function fires(
    alert: string,
    [healthy, faulty, cleared]: readonly [Scrape, Scrape, Scrape],
    labels: Record<string, string> = {},
  ): Promise<void> {
    await assertFiresAndClears(promtool ?? "", fixture.folder, { alert, labels, healthy, faulty, cleared });
    shown.add(alert);
  }

  /** The results of the queries of the component `keda` by trigger. */
  async function assertScaling(state: Scrape, values: Record<string, number | undefined>): Promise<void> {
    for (const [name, value] of Object.entries(values))
      await assertValue(promtool ?? "", fixture.folder, scalingQueries()[name] ?? name, state, value);
  }

  const turns = (count: number) => Promise.all(Array.from({ length: count }, () => turn("say: quick")));

  async function send(text: string): Promise<void> {
    const address = { channel: "telegram", account: "main", conversation: "42" };
    const outgoing = { address, text, expiresInMs: 3_600_000 };
    await fixture.bus.request(store.outboxPut, { opId: crypto.randomUUID(), outgoing });
  }

  test("fire when Redis is away, and clear when it is back", async () => {
    const healthy = await whole();
    await links.redis.refuse();
    await until("the end of the leadership", (value) => (value("parley_leader") ?? 0) === 0);
    const posted = await client.post("say: late", { conversation: "waits" });
    await query(
      "UPDATE parley.inbox SET received_at = now() - interval '3 minutes', ready_at = now() - interval '3 minutes' WHERE id = $1",
      [posted],
    );
    const faulty = await until(
      "a message that waits without a leader",
      (value) =>
        (value("parley_leader") ?? 0) === 0 &&
        value("parley_redis_connected") === 0 &&
        (value("parley_inbox_oldest_seconds", { behind: "leader" }) ?? 0) > 60,
    );
    await links.redis.restore();
    assert.equal((await client.settled(posted, 120_000)).text, "late");
    const cleared = await until(
      "a leader and no waiting message",
      (value) =>
        value("parley_leader") === 1 &&
        value("parley_redis_connected") === 1 &&
        value("parley_inbox_oldest_seconds", { behind: "leader" }) === 0,
    );
    for (const alert of ["ParleyNoLeader", "ParleyRedisUnreachable", "ParleyMessagesWait"])
      await fires(alert, [healthy, faulty, cleared]);
    // Nobody's queue contains the message that waits.
    await assertScaling(faulty, { sessions: undefined, inbox: 1 });
  });

  test("let KEDA count calls, background commands and sessions, and miss nothing while all is idle", async () => {
    const idle = { calls: 0, "runners-with-commands": 0, sessions: 0, inbox: 0, clients: 0 };
    const settled = () => until("an idle leader", (value) => value("parley_sessions_active") === 0);
    await assertScaling(await settled(), idle);
    await turn(`tool: exec {"command":"sleep 600","background":true}\nthen\nsay: done`);
    await assertScaling(await settled(), { ...idle, calls: 1, "runners-with-commands": 1 });
    const posted = await client.post(`${waitingFor("on")}\nthen\nsay: done`, { conversation: "scaling" });
    const busy = await until(
      "a running call",
      (value) => value("parley_tool_calls_running") === 1 && value("parley_sessions_active") === 1,
    );
    await assertScaling(busy, { ...idle, calls: 2, "runners-with-commands": 1, sessions: 1 });
    await writeFile(join(cluster.home, "workspace", "on"), "");
    await client.settled(posted, 120_000);
    const unscraped = { ...busy, samples: [] };
    await assertScaling(unscraped, {
      calls: undefined,
      "runners-with-commands": undefined,
      sessions: undefined,
      inbox: undefined,
      clients: undefined,
    });
  });

  test("fire when a channel cannot be reached, and clear when its text was sent", async () => {
    const healthy = await whole();
    await links.telegram.refuse();
    await send("late");
    await query(
      "UPDATE parley.outbox SET created_at = now() - interval '3 minutes' WHERE state IN ('pending', 'sending')",
    );
    const faulty = await until(
      "an unsent text and a failing account",
      (value) =>
        (value("parley_outbox_oldest_seconds") ?? 0) > 120 &&
        value("parley_channel_states", { channel: "telegram", state: "failing" }) === 1,
    );
    await links.telegram.restore();
    await query("UPDATE parley.outbox SET not_before = now() WHERE state = 'pending'");
    await fixture.telegram.untilSent(1);
    const cleared = await until(
      "no unsent text and a connected account",
      (value) =>
        value("parley_outbox_oldest_seconds") === 0 &&
        value("parley_channel_states", { channel: "telegram", state: "connected" }) === 1,
    );
    await fires("ParleyAnswersNotSent", [healthy, faulty, cleared]);
    await fires("ParleyChannelDown", [healthy, faulty, cleared], { channel: "telegram" });
  });

  test("fires when a send has no answer, and clears after it", async () => {
    const healthy = await whole();
    fixture.telegram.fail("sendMessage", { kind: "reset_after_commit" });
    await send("perhaps");
    const faulty = await until(
      "a delivery with an unknown outcome",
      (value) => (value("parley_outbound_total", { outcome: "unknown" }) ?? 0) >= 1,
    );
    await fires("ParleyDeliveryUnknown", [healthy, faulty, await whole()]);
  });

  test("fires when the model fails, and clears when it answers", async () => {
    const healthy = await whole();
    for (let number = 0; number < 3; number++) cluster.scripted?.failNext({ status: 500 });
    await turn("say: after failures");
    const faulty = await until(
      "failed calls",
      (value) => value("parley_model_calls_total", { outcome: "server" }) === 3,
    );
    await turns(3);
    await fires("ParleyModelErrors", [healthy, faulty, await whole()]);
  });

  test("fires at the first call that the provider refuses, and clears after it", async () => {
    const healthy = await whole();
    cluster.scripted?.failNext({ status: 401 });
    await turn("say: refused");
    const faulty = await until(
      "a refused call",
      (value) => value("parley_model_calls_total", { outcome: "auth" }) === 1,
    );
    await turns(1);
    await fires("ParleyModelRefused", [healthy, faulty, await whole()]);
  });

  test("fires when an answer starts late, and clears when answers are quick", async () => {
    const healthy = await whole();
    // A turn that occupies the session, so that the next message waits in the queue and can be made older.
    const first = await client.post(`${waitingFor("go")}\nthen\nsay: done`, {
      conversation: "slow",
    });
    const second = await client.post("say: slow", { conversation: "slow", mode: "queue" });
    const older = (Date.now() - 120_000).toString(16).padStart(12, "0");
    const id = `${older.slice(0, 8)}-${older.slice(8)}${second.slice(13)}`;
    assert.equal(await query("UPDATE parley.inbox SET id = $2 WHERE id = $1 AND state = 'queued'", [second, id]), 1);
    await writeFile(join(cluster.home, "workspace", "go"), "");
    await client.settled(first, 120_000);
    await client.settled(id, 120_000);
    const faulty = await until(
      "a late first text",
      (value) =>
        (value("parley_turn_first_text_seconds_bucket", { le: "300" }) ?? 0) >
        (value("parley_turn_first_text_seconds_bucket", { le: "60" }) ?? 0),
    );
    await turns(3);
    await fires("ParleyAnswersSlow", [healthy, faulty, await whole()]);
  });

  test("fires when the workspace is full, and clears when files were deleted", async () => {
    const exec = (command: string) => turn(`tool: exec ${JSON.stringify({ command })}\nthen\nsay: done`);
    const write = (path: string) => turn(`tool: write {"path":"${path}","content":"x"}\nthen\nsay: done`);
    await write("one");
    const healthy = await whole();
    await exec("head -c 5000000 /dev/urandom > big");
    await write("two");
    const faulty = await until("a full workspace", (value) => (value("parley_workspace_bytes") ?? 0) > 4_194_304);
    await exec("rm big");
    await write("three");
    await fires("ParleyWorkspaceFull", [healthy, faulty, await whole()]);
  });

  test("fires when a certificate expires soon, and clears when it was renewed", async () => {
    const healthy = await whole();
    await appendFile(fixture.caFile, await readFile(fixture.expiring));
    const in14Days = Date.now() / 1_000 + 14 * 86_400;
    const faulty = await until(
      "a certificate that expires",
      (value) => (value("parley_certificate_expiry_timestamp_seconds") ?? in14Days) < in14Days,
    );
    await copyFile(tlsFixtures.ca, fixture.caFile);
    await fires("ParleyCertificateExpires", [healthy, faulty, await whole()], { link: "redis" });
  });

  test("fires when a turn made no progress five times, and does not stay", async () => {
    const healthy = await whole();
    await cluster.fault("agent.before_model", "kill");
    const posted = await client.post("say: never", { conversation: "dead" });
    // Two real claims; the three between them are counted without waiting for three more restarts.
    await pollUntil(async () => {
      const updated = await query(
        "UPDATE parley.turns t SET attempts = 5 FROM parley.inbox i WHERE i.id = $1 AND t.id = i.turn_id",
        [posted],
      );
      return updated === 1;
    }, "a claimed turn");
    const faulty = await until("a dead turn", (value) => (value("parley_turns_total", { outcome: "dead" }) ?? 0) >= 1);
    await turns(1);
    await fires("ParleyMessagesDeadLettered", [healthy, faulty, await whole()]);
  });

  test("fire when PostgreSQL is away and the store restarts, and clear when it is back", async () => {
    const healthy = await whole();
    await links.postgres.refuse();
    await cluster.kill("store", 1, "SIGKILL");
    const faulty = await until(
      "a store that waits",
      (value) =>
        value("parley_start_waiting", { service: "store" }) === 1 &&
        value("parley_cluster_measured_timestamp_seconds") === undefined,
    );
    await links.postgres.restore();
    const cleared = await until(
      "a store that measures",
      (value) =>
        value("parley_start_waiting", { service: "store" }) === 0 &&
        value("parley_cluster_measured_timestamp_seconds") !== undefined,
    );
    await fires("ParleyStoreFailing", [healthy, faulty, cleared]);
    await fires("ParleyReplicaWaits", [healthy, faulty, cleared], { service: "store" });
  });

  test("fires when the budget of the day is almost spent, and clears when it was raised", async () => {
    const before = await until("a known cost", (value) => (value("parley_cost_today_usd") ?? 0) > 0);
    const spent = before.samples.find(({ name }) => name === "parley_cost_today_usd")?.value ?? 0;
    const restarted = async (limitUsd: number): Promise<Scrape> => {
      await writeFile(
        join(cluster.home, "parley.toml"),
        `${fixture.settings}[limits]\nmax_usd_per_day = ${limitUsd}\n`,
      );
      await cluster.restart("agent-core", 1);
      return until(
        "a leader with this limit",
        (value) => value("parley_cost_limit_usd") === limitUsd && (value("parley_cost_today_usd") ?? 0) >= spent,
      );
    };
    const healthy = await restarted(spent * 10);
    const faulty = await restarted(spent * 1.05);
    const cleared = await restarted(spent * 20);
    await fires("ParleyDailyBudget", [healthy, faulty, cleared]);
  });

  test("are all shown", () => {
    assert.deepEqual([...shown].toSorted(), rules.map(({ alert }) => alert).toSorted());
  });
});
