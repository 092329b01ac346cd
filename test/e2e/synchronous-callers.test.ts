// Callers that wait for their answer while others call at the same time, on a whole cluster with the default settings: each gets the
// answer to its own input.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Cleanup } from "@parley/testing";
import { z } from "zod";
import { parley, runParley } from "../../packages/cli/test/support/parley.ts";
import { startClusterFixture, waitingFor, type ClusterFixture } from "./presets/support/fixture.ts";
import { completion } from "./support/callers.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

before(async () => {
  fixture = await startClusterFixture(cleanup, null, {
    processes: [],
    settings: '[permissions]\nallow = ["exec"]\n',
  });
});
after(() => cleanup[Symbol.asyncDispose]());

/** A script that calls a tool until the file exists, then answers. */
const slow = (file: string, answer: string) => `${waitingFor(file)}\nthen\nsay: ${answer}`;
const call = (text: string, conversation?: string) =>
  completion({ url: fixture.cluster.httpUrl, token: fixture.cluster.token, text, conversation });
const run = (...args: string[]) => runParley(fixture.cluster.home, ["run", ...args]);

/** Resolves when the turn that runs this command has started it. */
const commandStarted = (file: string) =>
  fixture.happens((event) => event.type === "tool.started" && JSON.stringify(event).includes(file));

/** Lets the command that waits for this file end, from a session of its own. */
async function release(file: string): Promise<void> {
  assert.equal(await call(`tool: exec {"command":"touch ${file}"}\nthen\nsay: released`), "released");
}

test("returns two OpenAI clients their own answers when their `user` differs", async () => {
  const first = call(slow("users", "answer A"), "a");
  await commandStarted("users");
  const second = call("say: answer B", "b");
  await release("users");
  assert.deepEqual(await Promise.all([first, second]), ["answer A", "answer B"]);
});

test("answers OpenAI clients without `user` in separate sessions that do not wait", async () => {
  const first = call(slow("anonymous", "answer A"));
  await commandStarted("anonymous");
  assert.equal(await call("say: answer B"), "answer B");
  await release("anonymous");
  assert.equal(await first, "answer A");
});

test("answers two concurrent runs in separate sessions", async () => {
  const first = run(slow("runs", "first answer"));
  await commandStarted("runs");
  const second = await run("say: second answer");
  await release("runs");
  const outcomes = [await first, second].map(({ code, stdout }) => [code, stdout]);
  assert.deepEqual(outcomes, [
    [0, "first answer\n"],
    [0, "second answer\n"],
  ]);
});

test("starts a turn for a steering chat message while a run of the same session is busy", async () => {
  const running = run("--conversation", "cli", slow("steered", "the run's answer"));
  await commandStarted("steered");
  const messageId = await fixture.client.post("say: the chat's answer", { conversation: "cli", mode: "steer" });
  await release("steered");
  assert.deepEqual(
    [(await running).stdout, (await fixture.ended(messageId)).text],
    ["the run's answer\n", "the chat's answer"],
  );
});

test("resumes a run by its id, and the newest run of this program with --continue", async () => {
  const Result = z.object({ session_id: z.string(), result: z.string() });
  const json = async (...args: string[]) => Result.parse(JSON.parse((await run("--output", "json", ...args)).stdout));
  const first = await json("say: one");
  assert.notEqual(first.session_id, (await fixture.session("main")).sessionId);
  assert.equal((await json("--resume", first.session_id, "say: two")).session_id, first.session_id);
  await call("say: of another program");
  assert.deepEqual(await json("--continue", "say: three"), { session_id: first.session_id, result: "three" });
});

test("returns one result for each message to a run, except for answers to questions", async () => {
  const user = (content: string) => `${JSON.stringify({ type: "user", message: { role: "user", content } })}\n`;
  const running = parley(fixture.cluster.home, ["run", "--output", "stream-json", "--input-format", "stream-json"]);
  running.write(user('tool: ask_user {"question":"Which colour?"}\nthen\nsay: noted'));
  await running.says(/"subtype":"user_question"/);
  running.write(user("blue"));
  await running.says(/"type":"result"/);
  running.write(user(slow("program", "three")));
  await commandStarted("program");
  running.write(user("say: four"));
  await release("program");
  const { stdout } = await running.endInput().outcome();
  const Line = z.looseObject({ type: z.string(), result: z.string().optional() });
  const results = stdout
    .trim()
    .split("\n")
    .map((line) => Line.parse(JSON.parse(line)))
    .filter(({ type }) => type === "result");
  assert.match(stdout, /The person answered: blue/);
  assert.deepEqual(
    results.map(({ result }) => result),
    ["noted", "three", "four"],
  );
});
