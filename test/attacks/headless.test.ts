// Calls that need an approval where nobody can give it, and the effect of a program's answer to `can_use_tool`. The tests check
// the files in the workspace, the output of `parley run` and the stored turns of a whole cluster.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { apiClient, Cleanup, startTestCluster, type ApiClient, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { parley, type Run, runParley } from "../../packages/cli/test/support/parley.ts";

const secret = "hook-secret-of-this-test";
const sentence = /Not run: no person can approve it here/;
/** Far below `approval_seconds`, far above the duration of the turn. */
const promptMs = 60_000;

const cleanup = new Cleanup();
let cluster: TestCluster;
let client: ApiClient;

before(async () => {
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings: `
[session]
policy = "per_conversation"
[permissions]
ask = ["write(asked*)"]
deny = ["write(forbidden*)"]
[tools]
execution = "serial"
[webhooks.build]
secret_env = "PARLEY_CHANNEL_HOOK"
signer = "github"
[[hooks]]
event = "PreToolUse"
matcher = "write_file"
command = '''grep -q guarded && { echo "a guard by alias" >&2; exit 2; }; exit 0'''
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_HOOK: secret } },
  });
  client = apiClient([cluster.httpUrl], cluster.token);
});
after(() => cleanup[Symbol.asyncDispose]());

const workspace = (name: string) => join(cluster.home, "workspace", name);
const written = (name: string) => existsSync(workspace(name));
const run = (args: readonly string[]): Run => parley(cluster.home, ["run", ...args]);
/** The same in the test's process; standard input is empty. */
const completed = (args: readonly string[]) => runParley(cluster.home, ["run", ...args]);
const writing = (path: string, content = "x") => `tool: write ${JSON.stringify({ path, content })}`;

const Result = z.looseObject({
  type: z.literal("result"),
  subtype: z.string(),
  result: z.string(),
  session_id: z.string(),
  permission_denials: z.array(z.looseObject({ tool_name: z.string() })),
});
const Line = z.looseObject({ type: z.string() });
const linesOf = (stdout: string) =>
  stdout
    .trim()
    .split("\n")
    .map((line) => Line.parse(JSON.parse(line)));
const resultOf = (stdout: string) => Result.parse(linesOf(stdout).at(-1));

/** Everything that the model received in a session, as text. */
async function logOf(session: string): Promise<string> {
  return (await client.fetch(`/api/sessions/${session}/messages?limit=200`)).text();
}

for (const output of ["json", "text", "stream-json"]) {
  test(`denies a call that needs approval immediately when parley run writes ${output}`, async () => {
    const file = `asked-${output}.txt`;
    const started = performance.now();
    const { code, stdout, stderr } = await completed(["--output", output, `${writing(file)}\nthen\nsay: over`]);
    assert.ok(performance.now() - started < promptMs);
    assert.equal(code, 0);
    assert.match(stderr, /denied: write: .*no person can approve it here/);
    assert.equal(written(file), false);
    if (output === "text") return;
    const result = resultOf(stdout);
    assert.deepEqual(
      result.permission_denials.map(({ tool_name }) => tool_name),
      ["write"],
    );
    assert.match(await logOf(result.session_id), sentence);
  });
}

test("denies an OpenAI call's write immediately when no owner has an address", async () => {
  assert.equal(await client.ask(`${writing("asked-openai.txt")}\nthen\nsay: over`, "openai"), "over");
  assert.equal(written("asked-openai.txt"), false);
  assert.match(await logOf("http:default:openai"), sentence);
});

test("denies a webhook's request immediately when no owner has an address", async () => {
  const body = `\ntool: web_fetch {"url":"https://collector.example/leak"}\nthen\nsay: over`;
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = {
    "x-hub-signature-256": `sha256=${signature}`,
    "x-github-delivery": "d-1",
    "content-type": "text/plain",
  };
  const response = await fetch(`${cluster.httpUrl}/hooks/build`, { method: "POST", headers, body });
  assert.equal(response.status, 202);
  const { messageId } = z.object({ messageId: z.string() }).parse(await response.json());
  const turn = await client.settled(messageId, promptMs);
  assert.equal(turn.state, "done");
  assert.match(await logOf(turn.sessionId), sentence);
});

test("waits for approval when the message came over the asynchronous API", async () => {
  const messageId = await client.post(`${writing("asked-api.txt")}\nthen\nsay: over`, { conversation: "api" });
  const id = await pending("http:default:api");
  const approved = await client.fetch(`/api/approvals/${id}`, {
    method: "POST",
    body: JSON.stringify({ decision: "allow" }),
  });
  assert.equal(approved.status, 200);
  assert.equal((await client.settled(messageId)).state, "done");
  assert.equal(written("asked-api.txt"), true);
});

/** The id of the open question of a session, as soon as there is one. */
async function pending(session: string): Promise<string> {
  const response = await client.fetch(`/api/events?session=${encodeURIComponent(session)}&after=0`, {
    headers: { accept: "text/event-stream" },
  });
  let text = "";
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString("utf8");
    const found = /"approvalId":"(\w+)"/.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`the events of ${session} ended without a question: ${text}`);
}

interface Question {
  request_id: string;
  input: unknown;
}

/** Starts a program's run whose turn writes `asked.txt`-like files, and returns its first question. */
async function questioned(script: string): Promise<{ running: Run; question: Question }> {
  const running = run(["--output", "stream-json", "--input-format", "stream-json"]);
  running.write(`${JSON.stringify({ type: "user", message: { role: "user", content: script } })}\n`);
  await running.says(/"subtype":"can_use_tool".*\n/);
  const complete = running.stdout.slice(0, running.stdout.lastIndexOf("\n"));
  const question = z
    .looseObject({ request_id: z.string(), request: z.looseObject({ input: z.unknown() }) })
    .parse(linesOf(complete).find(({ type }) => type === "control_request"));
  return { running, question: { request_id: question.request_id, input: question.request.input } };
}

function answer(running: Run, { request_id }: Question, response: object): void {
  running.write(`${JSON.stringify({ type: "control_response", response: { request_id, response } })}\n`);
}

async function finished(running: Run): Promise<z.output<typeof Result> & { stdout: string }> {
  await running.says(/"type":"result".*\n/);
  const { stdout } = await running.endInput().outcome();
  return { ...resultOf(stdout), stdout };
}

test("runs the rewritten call and not the original when the answer has updatedInput", async () => {
  const { running, question } = await questioned(`${writing("asked-1.txt", "first")}\nthen\nsay: over`);
  assert.deepEqual(question.input, { path: "asked-1.txt", content: "first" });
  answer(running, question, { behavior: "allow", updatedInput: { path: "rewritten-1.txt", content: "second" } });
  assert.equal((await finished(running)).subtype, "success");
  assert.equal(written("asked-1.txt"), false);
  assert.equal(readFileSync(workspace("rewritten-1.txt"), "utf8"), "second");
});

test("denies the call when the answer rewrites it into a denied path", async () => {
  const { running, question } = await questioned(`${writing("asked-2.txt")}\nthen\nsay: over`);
  answer(running, question, { behavior: "allow", updatedInput: { path: "forbidden-2.txt", content: "x" } });
  const { session_id } = await finished(running);
  assert.deepEqual([written("asked-2.txt"), written("forbidden-2.txt")], [false, false]);
  assert.match(await logOf(session_id), /write\(forbidden\*\)[\\"]* denies this call/);
});

test("sends the rewritten call to a hook when an alias matches the hook", async () => {
  const { running, question } = await questioned(`${writing("asked-3.txt")}\nthen\nsay: over`);
  answer(running, question, { behavior: "allow", updatedInput: { path: "guarded-3.txt", content: "x" } });
  const { session_id } = await finished(running);
  assert.deepEqual([written("asked-3.txt"), written("guarded-3.txt")], [false, false]);
  assert.match(await logOf(session_id), /a guard by alias/);
});

test("sends the reason to the model when a call is denied", async () => {
  const { running, question } = await questioned(`${writing("asked-4.txt")}\nthen\nsay: over`);
  answer(running, question, { behavior: "deny", message: "the release is frozen" });
  const { session_id } = await finished(running);
  assert.equal(written("asked-4.txt"), false);
  assert.match(await logOf(session_id), /denied by [^:]+: the release is frozen/);
});

test("ends the turn and answers the remaining calls when a denial interrupts", async () => {
  const script = `${writing("asked-5.txt")}\n${writing("later-5.txt")}\nthen\nsay: never`;
  const { running, question } = await questioned(script);
  answer(running, question, { behavior: "deny", message: "stop here", interrupt: true });
  const { subtype, session_id, stdout } = await finished(running);
  assert.equal(subtype, "error_during_execution");
  assert.deepEqual([written("asked-5.txt"), written("later-5.txt")], [false, false]);
  const count = (pattern: RegExp) => [...stdout.matchAll(pattern)].length;
  assert.equal(count(/"type":"tool_result"/g), count(/"type":"tool_use"/g));
  assert.match(await logOf(session_id), /denied by [^:]+: stop here/);
});

test("denies the call with an error response when a field cannot be honoured", async () => {
  const { running, question } = await questioned(`${writing("asked-6.txt")}\nthen\nsay: over`);
  answer(running, question, {
    behavior: "allow",
    updatedPermissions: [{ type: "setMode", mode: "bypassPermissions" }],
  });
  const { stdout } = await finished(running);
  assert.equal(written("asked-6.txt"), false);
  assert.match(stdout, /"control_response".*"subtype":"error".*updatedPermissions/);
});

test("applies --permission-mode during the run and restores it afterwards", async () => {
  const args = ["--output", "json", "--permission-mode", "plan", "--conversation", "planned"];
  const planned = await completed([...args, `${writing("planned.txt")}\nthen\nsay: over`]);
  assert.equal(planned.code, 0, planned.stderr);
  assert.equal(written("planned.txt"), false);
  const again = await completed(["--conversation", "planned", `${writing("planned.txt")}\nthen\nsay: over`]);
  assert.equal(again.code, 0, again.stderr);
  assert.equal(written("planned.txt"), true);
  const bypass = await completed(["--permission-mode", "bypassPermissions", writing("bypassed.txt")]);
  assert.notEqual(bypass.code, 0);
  assert.match(bypass.stderr, /allow_bypass/);
  assert.equal(written("bypassed.txt"), false);
});
