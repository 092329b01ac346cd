// One trace from a webhook's delivery to the message on the chat platform, through all four services, as a collector receives it.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import {
  apiClient,
  Cleanup,
  startOtlpCollector,
  startTelegramPeer,
  startTestCluster,
  type CollectedSpan,
  type OtlpCollector,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";

const secret = "hook-secret-for-this-test";
/** Part of the message, the tool's input, its output and the answer. */
const canary = "canary-3f9a";

interface ClusterFixture {
  collector: OtlpCollector;
  telegram: TelegramPeer;
  cluster: TestCluster;
}

async function startClusterFixture(
  cleanup: Cleanup,
  env: Record<string, string>,
  store: Record<string, string> = {},
): Promise<ClusterFixture> {
  const collector = await startOtlpCollector();
  cleanup.add(() => collector.close());
  const telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const cluster = await startTestCluster(cleanup, {
    model: true,
    settings: `
[permissions]
guest_allow = ["write"]
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
owners = ["1"]
[webhooks.build]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "github"
allow = ["write"]
reply_to = { channel = "telegram", account = "main", conversation = "1" }
`,
    env: {
      all: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_BSP_SCHEDULE_DELAY: "50",
        ...env,
      },
      store,
      "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token, PARLEY_CHANNEL_HOOK: secret },
    },
  });
  // From here on the hints reach a leader.
  await apiClient([cluster.httpUrl], cluster.token).ask("say: ready");
  return { collector, telegram, cluster };
}

/** Delivers a webhook whose text makes the model call a tool and then answer. */
async function deliver({ cluster, telegram }: ClusterFixture, id: string): Promise<void> {
  const body = `\ntool: write {"path":"${canary}.txt","content":"${canary}"}\nthen\nsay: ${canary} is written`;
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const response = await fetch(`${cluster.httpUrl}/hooks/build`, {
    method: "POST",
    headers: { "x-hub-signature-256": `sha256=${signature}`, "x-github-delivery": id, "content-type": "text/plain" },
    body,
  });
  assert.equal(response.status, 202, await response.text());
  await telegram.untilAnswered(1);
}

/** The trace that begins at the webhook; returns a span by the beginning of its name, once it has arrived. */
async function traceOf({ collector }: ClusterFixture) {
  const root = await collector.span(({ name }) => name === "receive hook");
  const ours = (name: string) => (span: CollectedSpan) => span.traceId === root.traceId && span.name.startsWith(name);
  return {
    root,
    find: (name: string) => collector.span(ours(name)),
    all: (name: string) => collector.spans.filter(ours(name)),
    parentOf: (child: CollectedSpan) => collector.span(({ spanId }) => spanId === child.parentSpanId),
  };
}

const what = ({ name, kind, service }: CollectedSpan) => `${name} (${kind}) in ${service}`;

describe("webhook with a tool call and an answer on Telegram", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;
  before(async () => {
    fixture = await startClusterFixture(cleanup, {});
    await deliver(fixture, "d-1");
  });
  after(() => cleanup[Symbol.asyncDispose]());

  // design: 001.31
  test("has one trace through all four services, with each span below its cause", async () => {
    const { root, find, parentOf } = await traceOf(fixture);
    assert.equal(what(root), "receive hook (consumer) in channel-gateway");
    assert.equal(root.parentSpanId, undefined);
    const turn = await find("invoke_agent");
    assert.equal(what(turn), "invoke_agent parley (internal) in agent-core");
    assert.equal(turn.parentSpanId, root.spanId);
    const tool = await find("execute_tool");
    assert.equal(what(tool), "execute_tool write (internal) in tool-runner");
    const handled = await parentOf(tool);
    assert.equal(what(handled), "process tool.call.{tool} (consumer) in tool-runner");
    const asked = await parentOf(handled);
    assert.equal(what(asked), "send tool.call.{tool} (producer) in agent-core");
    assert.equal(asked.parentSpanId, turn.spanId);
    const sent = await find("send telegram");
    assert.equal(what(sent), "send telegram (producer) in channel-gateway");
    assert.equal(sent.parentSpanId, turn.spanId);
  });

  // design: 001.31
  test("has a span with cost for each model call, and none of the provider's library", async () => {
    const { find, all } = await traceOf(fixture);
    const turn = await find("invoke_agent");
    const [first, second, ...more] = all("chat ");
    assert.ok(first !== undefined && second !== undefined && more.length === 0);
    for (const chat of [first, second]) {
      assert.equal(chat.kind, "client");
      assert.equal(chat.parentSpanId, turn.spanId);
      assert.equal(chat.name, `chat ${String(chat.attributes["gen_ai.request.model"])}`);
      assert.equal(chat.attributes["gen_ai.provider.name"], "anthropic");
      assert.equal(chat.attributes["gen_ai.conversation.id"], turn.attributes["gen_ai.conversation.id"]);
      assert.equal(chat.attributes["gen_ai.usage.input_tokens"], 100);
      assert.equal(chat.attributes["gen_ai.usage.output_tokens"], 10);
    }
    assert.deepEqual(first.attributes["gen_ai.response.finish_reasons"], ["tool_use"]);
    assert.deepEqual(second.attributes["gen_ai.response.finish_reasons"], ["end_turn"]);
    assert.deepEqual([...new Set(fixture.collector.spans.map(({ scope }) => scope))], ["parley"]);
  });

  test("links the turn to the wake-up that started it without the queue", async () => {
    const { root, find, all } = await traceOf(fixture);
    const woken = await find("process turns");
    assert.equal(what(woken), "process turns (consumer) in agent-core");
    assert.equal(woken.parentSpanId, root.spanId);
    assert.deepEqual(all("send turns"), []);
    assert.deepEqual(
      (await find("invoke_agent")).links.map(({ spanId }) => spanId),
      [woken.spanId],
    );
  });

  // design: 001.31b
  test("has the turn of a sub-agent below the turn that started it", async () => {
    const { collector, cluster } = fixture;
    const call = 'tool: sessions_spawn {"prompt":"say: found"}';
    assert.equal(await apiClient([cluster.httpUrl], cluster.token).ask(`${call}\nthen\nsay: reported`), "reported");
    const isTurn = ({ name }: CollectedSpan) => name.startsWith("invoke_agent");
    const causes = (span: CollectedSpan): CollectedSpan[] => {
      const cause = collector.spans.find(
        ({ traceId, spanId }) => traceId === span.traceId && spanId === span.parentSpanId,
      );
      return cause === undefined ? [] : [cause, ...causes(cause)];
    };
    // The parent's span arrives last, because it ends last.
    await collector.span(() => collector.spans.some((span) => isTurn(span) && causes(span).some(isTurn)));
  });

  // design: 001.31
  test("sends no message, tool input or answer to the collector", async () => {
    const { find } = await traceOf(fixture);
    await Promise.all([find("send telegram"), find("invoke_agent")]);
    assert.equal(fixture.telegram.sent[0]?.text, `${canary} is written`);
    for (const word of [canary, secret, fixture.telegram.token])
      assert.ok(!fixture.collector.bodies.join("").includes(word));
    assert.ok(!fixture.collector.spans.some(({ name }) => name.includes("store.")), "the store's requests have spans");
  });
});

describe("with every hint lost and content recording on", () => {
  const cleanup = new Cleanup();
  let fixture: ClusterFixture;
  before(async () => {
    const env = { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true", PARLEY_TRACE_STORE: "true" };
    fixture = await startClusterFixture(cleanup, env, { FAULT_DROP_HINTS: "1" });
    await deliver(fixture, "d-2");
  });
  after(() => cleanup[Symbol.asyncDispose]());

  test("still has one trace from webhook to message, because the store keeps the context", async () => {
    const { root, find, all, parentOf } = await traceOf(fixture);
    const turn = await find("invoke_agent");
    // The store's requests also have spans here, between a message and its turn, and between the turn and its replies.
    const kept = await parentOf(turn);
    assert.equal(what(kept), "process store.inbox.put (consumer) in store");
    assert.equal((await parentOf(kept)).parentSpanId, root.spanId);
    const committed = await parentOf(await find("send telegram"));
    assert.equal(what(committed), "process store.step.commit (consumer) in store");
    assert.equal((await parentOf(committed)).parentSpanId, turn.spanId);
    assert.deepEqual(all("process turns"), []);
  });

  // design: 001.31
  test("records messages, tool inputs and answers in their spans", async () => {
    const { find, all } = await traceOf(fixture);
    const tool = await find("execute_tool");
    assert.match(String(tool.attributes["gen_ai.tool.call.arguments"]), new RegExp(canary));
    assert.match(String(tool.attributes["gen_ai.tool.call.result"]), new RegExp(canary));
    await find("invoke_agent");
    const [first, second] = all("chat ");
    const asked = JSON.parse(String(first?.attributes["gen_ai.input.messages"])) as { role: string; parts: object[] }[];
    assert.equal(asked.at(-1)?.role, "user");
    assert.match(JSON.stringify(asked.at(-1)?.parts), new RegExp(canary));
    assert.deepEqual(JSON.parse(String(second?.attributes["gen_ai.output.messages"])), [
      {
        role: "assistant",
        parts: [{ type: "text", content: `${canary} is written` }],
        finish_reason: "end_turn",
      },
    ]);
  });

  test("records spans of the store's requests when enabled", async () => {
    const { root, find } = await traceOf(fixture);
    const put = await find("send store.inbox.put");
    assert.equal(put.parentSpanId, root.spanId);
    const kept = await find("process store.inbox.put");
    assert.equal(kept.parentSpanId, put.spanId);
    assert.equal(kept.service, "store");
  });
});
