// Untrusted content in documents, in the prompts of a whole cluster: untrusted lines are marked, and such documents are neither a
// skill nor a task until the owner marks them as trusted.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { pollUntil } from "@parley/testing/until";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { runParley } from "../../packages/cli/test/support/parley.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    model: true,
    settings: '[session]\npolicy = "per_conversation"\n',
  });
  client = apiClient(cluster.httpUrls, cluster.token);
});
after(async () => {
  assert.deepEqual(cluster.strict?.refusals, [], "the real API would have refused these requests");
  await cleanup[Symbol.asyncDispose]();
});

const Approvals = z.object({ approvals: z.array(z.object({ id: z.string(), tool: z.string() })) });

async function post(path: string, body: object): Promise<unknown> {
  const answer = await client.fetch(path, { method: "POST", body: JSON.stringify(body) });
  assert.equal(answer.status, 200);
  return answer.json();
}

/** The agent writes in a turn that has read untrusted content, and the owner approves it. */
async function writtenAfterReading(tool: string, input: object): Promise<void> {
  const script = `tool: web_fetch {"url":"http://127.0.0.1:1/"}\nthen\ntool: ${tool} ${JSON.stringify(input)}\nthen\nsay: done`;
  const message = await client.post(script, { conversation: randomUUID() });
  const asked = async () => Approvals.parse(await (await client.fetch("/api/approvals")).json()).approvals[0];
  const approval = await pollUntil(asked, "the approval");
  assert.equal(approval.tool, tool);
  await post(`/api/approvals/${approval.id}`, { decision: "allow" });
  assert.equal((await client.settled(message)).text, "done");
}

async function edit(path: string, expectedVersion: number, change: (text: string) => string): Promise<void> {
  const { stdout } = await runParley(cluster.home, ["docs", "show", path]);
  await post("/api/documents/put", { path, expectedVersion, content: change(stdout) });
}

async function vouch(path: string, version: number): Promise<void> {
  const done = await runParley(cluster.home, ["docs", "vouch", path, "--version", `${version}`]);
  assert.equal(done.code, 0, done.stderr);
}

/** The last request that the model received. */
function sent(): { system: string; last: string } {
  const request = cluster.strict?.requests.at(-1);
  assert.ok(request !== undefined);
  return {
    system: request.system.map(({ text }) => text).join("\n"),
    last: JSON.stringify(request.messages.at(-1)),
  };
}

async function ask(conversation: string): Promise<{ system: string; last: string }> {
  await client.settled(await client.post("say: hello", { conversation }));
  return sent();
}

/** A conversation that begins when the agent knows the newest documents. */
async function begunOn(isNew: (system: string) => boolean): Promise<{ conversation: string; system: string }> {
  for (;;) {
    const conversation = randomUUID();
    const { system } = await ask(conversation);
    if (isNew(system)) return { conversation, system };
  }
}

test("marks untrusted lines in the prompt until the owner marks the document as trusted", async () => {
  await writtenAfterReading("memory_write", { content: "The baker asks to be paid in advance." });
  await edit("MEMORY.md", 1, (text) => `${text}Answered on Monday.\n`);
  const { conversation, system } = await begunOn((now) => now.includes("Answered on Monday."));
  assert.match(system, /\(Text between <untrusted> and <\/untrusted> was written after reading untrusted content/);
  assert.match(system, /<untrusted>\n[^<]*The baker asks[^<]*\n<\/untrusted>\nAnswered on Monday\.\n<\/document>/);

  await vouch("MEMORY.md", 2);
  const vouched = await begunOn((now) => !now.includes("<untrusted>"));
  assert.match(vouched.system, /The baker asks to be paid in advance\.\nAnswered on Monday\./);
  const next = await ask(conversation);
  assert.equal(next.system, system, "the prompt of a conversation that goes on stays as it is");
  assert.match(next.last, /MEMORY\.md has the same content, but a person has marked it as trusted/);
});

test("uses no skill with an untrusted line until the owner marks it as trusted", async () => {
  const path = "skills/bread/SKILL.md";
  const content = "---\nname: bread\ndescription: How to order bread\nalways: true\n---\n\nPay in advance.\n";
  await writtenAfterReading("write", { path, content });
  await edit(path, 1, (text) => text.replace("order bread", "order good bread"));
  await edit("SOUL.md", 0, () => "calm\n");
  const { conversation, system } = await begunOn((now) => now.includes("calm"));
  assert.doesNotMatch(system, /bread|Pay in advance/);

  await vouch(path, 2);
  const vouched = await begunOn((now) => now.includes("### Skill: bread"));
  assert.match(vouched.system, /### Skill: bread\n\nPay in advance\./);
  const next = await ask(conversation);
  assert.match(next.last, /Skills:\\n- bread: How to order good bread \(skills\/bread\/SKILL\.md\) \[new\]/);
});

test("ignores an untrusted heartbeat list until the owner marks it as trusted", async () => {
  const Beat = z.object({ outcome: z.string(), inboxId: z.string().nullable() });
  const beat = async () => Beat.parse(await post("/api/heartbeat", {}));
  const fired = async () => {
    const { outcome, inboxId } = await beat();
    assert.equal(outcome, "fired");
    await client.settled(inboxId ?? "");
    return sent().last;
  };
  await writtenAfterReading("write", { path: "HEARTBEAT.md", content: "- pay the baker\n" });
  assert.equal((await beat()).outcome, "empty");
  await edit("HEARTBEAT.md", 1, (text) => `${text}say: the plants are dry\n`);
  const own = await fired();
  assert.match(own, /1 line is omitted below.*HEARTBEAT\.md:\\n\\nsay: the plants are dry/);
  assert.doesNotMatch(own, /baker/);
  await vouch("HEARTBEAT.md", 2);
  assert.match(await fired(), /HEARTBEAT\.md:\\n\\n- pay the baker\\nsay: the plants are dry/);
});
