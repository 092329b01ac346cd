// `parley run` against a whole cluster: one prompt with text, JSON or stream output; limits, questions, control requests.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Cleanup, pollUntil, startTestCluster, temporaryFolder, type TestCluster } from "@parley/testing";
import { z } from "zod";
import { parley, type Run, runParley } from "../../packages/cli/test/support/parley.ts";

const cleanup = new Cleanup();
let cluster: TestCluster;
let project: string;

before(async () => {
  project = await temporaryFolder(cleanup);
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings:
      '[session]\npolicy = "per_conversation"\n[permissions]\nask = ["write(secret*)"]\n' +
      `[workspace.folders]\nproject = "${project}"\n`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

const Line = z.looseObject({ type: z.string(), subtype: z.string().optional(), session_id: z.string().optional() });
const Block = z.looseObject({ type: z.string(), id: z.string().optional(), tool_use_id: z.string().optional() });
const Said = z.object({ message: z.looseObject({ content: z.array(Block) }) });
const Result = z.looseObject({
  type: z.literal("result"),
  subtype: z.string(),
  is_error: z.boolean(),
  result: z.string(),
  num_turns: z.number(),
  duration_ms: z.number(),
  total_cost_usd: z.number().nullable(),
  session_id: z.string(),
  permission_denials: z.array(z.looseObject({ tool_name: z.string() })),
});

function run(args: readonly string[]): Run {
  return parley(cluster.home, ["run", ...args]);
}

/** The same in the test's process; standard input is empty. */
const completed = (args: readonly string[]) => runParley(cluster.home, ["run", ...args]);

function linesOf(stdout: string) {
  return stdout
    .trim()
    .split("\n")
    .map((line) => Line.parse(JSON.parse(line)));
}

const resultOf = (stdout: string) => Result.parse(linesOf(stdout).at(-1));
const user = (content: string) => `${JSON.stringify({ type: "user", message: { role: "user", content } })}\n`;
const control = (id: string, request: object) =>
  `${JSON.stringify({ type: "control_request", request_id: id, request })}\n`;

// design: 001.28
test("prints only the answer as text, also when the prompt comes from standard input", async () => {
  const answered = await run(["say: forty-two"]).endInput().outcome();
  assert.deepEqual([answered.code, answered.stdout, answered.stderr], [0, "forty-two\n", ""]);
  const piped = await run([]).endInput("say: from a pipe\n").outcome();
  assert.deepEqual([piped.code, piped.stdout], [0, "from a pipe\n"]);
});

// design: 002.18
test("reports turns, cost and session as json, and continues the session with --resume", async () => {
  const first = await completed(["--output", "json", 'tool: ls {"path":"."}\nthen\nsay: looked']);
  const result = resultOf(first.stdout);
  assert.deepEqual([first.code, result.subtype, result.result, result.num_turns], [0, "success", "looked", 2]);
  assert.equal(result.total_cost_usd, 0);
  const second = await completed(["--output", "json", "--resume", result.session_id, "say: again"]);
  assert.equal(resultOf(second.stdout).session_id, result.session_id);
  const third = await completed(["--output", "json", "--continue", "say: again"]);
  assert.equal(resultOf(third.stdout).session_id, result.session_id);
  const fresh = await completed(["--output", "json", "say: elsewhere"]);
  assert.notEqual(resultOf(fresh.stdout).session_id, result.session_id);
});

const Started = z.object({ event: z.looseObject({ type: z.literal("message_start") }) });

// design: 003.41
test("streams init, each call with progress and result, and the final result as stream-json", async () => {
  const script = 'think: hm\ntool: ls {"path":"."}\ntool: glob {"pattern":"*"}\nthen\nsay: done and done';
  const { code, stdout } = await completed(["--output", "stream-json", "--partial", script]);
  const lines = linesOf(stdout);
  assert.equal(code, 0);
  const init = z
    .looseObject({
      model: z.string(),
      tools: z.array(z.string()),
      permissionMode: z.string(),
      cwd: z.literal(`${cluster.home}/workspace`),
    })
    .parse(lines[0]);
  assert.equal(lines[0]?.subtype, "init");
  assert.equal(init.model, "rehearsal");
  for (const tool of ["exec", "ls", "message", "ask_user", "memory_search", "sessions_spawn"])
    assert.ok(init.tools.includes(tool), tool);
  assert.deepEqual(lines.filter(({ type }) => type === "result").length, 1);
  assert.equal(lines.at(-1)?.type, "result");
  assert.equal(new Set(lines.map(({ session_id }) => session_id)).size, 1);

  const told = lines.filter(({ type }) => type === "assistant" || type === "user" || type === "tool_progress");
  const asked = Said.parse(told[0]).message.content.filter(({ type }) => type === "tool_use");
  assert.equal(asked.length, 2);
  const progress = told.filter(({ type }) => type === "tool_progress");
  assert.deepEqual(
    progress.map(({ status }) => String(status)).sort((a, b) => a.localeCompare(b)),
    ["end", "end", "start", "start"],
  );
  const results = Said.parse(told.find(({ type }) => type === "user"));
  const starts = lines.flatMap((line, index) => (Started.safeParse(line).success ? [index] : []));
  assert.equal(starts.length, 2);
  const answered = lines.findIndex(({ type }) => type === "user");
  assert.ok((starts[0] ?? 0) < answered && answered < (starts[1] ?? 0), "results come before the next reply begins");
  assert.deepEqual(
    results.message.content.map((block) => block.tool_use_id),
    asked.map(({ id }) => id),
  );
  const Start = z.object({ event: z.object({ type: z.literal("message_start") }) });
  const order = lines.flatMap((line) =>
    Start.safeParse(line).success ? ["reply"] : line.type === "user" ? ["results"] : [],
  );
  assert.deepEqual(order, ["reply", "results", "reply"]);
  const Delta = z.object({ event: z.object({ delta: z.looseObject({ text: z.string() }) }) });
  const pieces = lines.flatMap((line) => {
    const delta = Delta.safeParse(line);
    return delta.success ? [delta.data.event.delta.text] : [];
  });
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(""), "done and done");
});

test("exits with 1 when a turn needs more model calls than --max-turns", async () => {
  const script = 'tool: ls {"path":"."}\nthen\ntool: exec {"command":"sleep 30","wait_seconds":120}\nthen\nsay: never';
  const { code, stdout } = await completed(["--output", "json", "--max-turns", "2", script]);
  const result = resultOf(stdout);
  assert.deepEqual([code, result.subtype, result.is_error, result.num_turns], [1, "error_max_turns", true, 2]);
});

// design: 003.2
test("names a limit in dollars that did not hold, because the price of a call is not known", async () => {
  const limited = await completed(["--output", "json", "--max-usd", "1", "usage: unknown\nsay: done"]);
  assert.deepEqual([limited.code, resultOf(limited.stdout).total_cost_usd], [0, null]);
  assert.match(limited.stderr, /limit of 1 US dollars: calls without a known price did not count; set price in/);
  const priced = await completed(["--output", "json", "--max-usd", "1", "say: done"]);
  assert.equal(priced.stderr, "");
});

// design: 001.28
test("exits with 1 and writes the error to standard error when the model fails", async () => {
  const { code, stdout, stderr } = await completed(["fail: auth always\nsay: never"]);
  assert.deepEqual([code, stdout], [1, ""]);
  assert.notEqual(stderr, "");
});

// design: 001.28
test("stops the turn and exits with 130 when the person presses Ctrl-C", async () => {
  const running = run(["--output", "stream-json", "--partial", "wait: 200\nwords: 100"]).endInput();
  await running.says(/text_delta/);
  running.kill("SIGINT");
  const { code, stdout } = await running.outcome();
  assert.equal(code, 130);
  assert.equal(resultOf(stdout).subtype, "error_during_execution");
});

// design: 003.6
test("stops the turn, restores the session and exits with 143 on SIGTERM, although the input stays open", async () => {
  const modes = ["--permission-mode", "accept_edits"];
  const running = run(["--output", "stream-json", "--input-format", "stream-json", "--partial", ...modes]);
  running.write(user("wait: 200\nwords: 100"));
  await running.says(/text_delta/);
  running.kill("SIGTERM");
  const { code, stdout } = await running.outcome();
  const { subtype, session_id } = resultOf(stdout);
  assert.deepEqual([code, subtype], [143, "error_during_execution"]);
  const after = await completed(["--output", "stream-json", "--resume", session_id, "say: over"]);
  assert.equal(linesOf(after.stdout)[0]?.["permissionMode"], "default");
});

// design: 003.7
test("denies the open question and those that follow when the program closes its input", async () => {
  const running = run(["--output", "stream-json", "--input-format", "stream-json"]);
  const write = 'tool: write {"path":"secret.txt","content":"x"}';
  running.write(user(`${write}\nthen\n${write}\nthen\nsay: over`));
  await running.says(/"subtype":"can_use_tool"/);
  const { code, stdout } = await running.endInput().outcome();
  const { subtype, result, permission_denials: denials } = resultOf(stdout);
  assert.deepEqual([code, subtype, result, denials.length], [0, "success", "over", 2]);
  assert.match(stdout, /Nobody can approve this call: the program has closed its input/);
});

// design: 003.7, 003.43
test("lets a program answer a question about a call, and lists its denials in the result", async () => {
  const running = run(["--output", "stream-json", "--input-format", "stream-json"]);
  running.write(user('tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: over'));
  await running.says(/"subtype":"can_use_tool"/);
  const lines = linesOf(running.stdout.slice(0, running.stdout.lastIndexOf("\n")));
  const question = z
    .looseObject({ request_id: z.string() })
    .parse(lines.find(({ type }) => type === "control_request"));
  const response = { request_id: question.request_id, response: { behavior: "deny" } };
  running.write(`${JSON.stringify({ type: "control_response", response })}\n`);
  await running.says(/"type":"result"/);
  const { code, stdout } = await running.endInput().outcome();
  assert.equal(code, 0);
  assert.deepEqual(
    resultOf(stdout).permission_denials.map(({ tool_name }) => tool_name),
    ["write"],
  );
});

// design: 003.7, 003.42
test("answers each control request by its id, and gives the reason when it refuses", async () => {
  const running = run(["--output", "stream-json", "--input-format", "stream-json", "--partial"]);
  running.write(user("say: one"));
  await running.says(/"type":"result"/);
  running.write(control("m", { subtype: "set_permission_mode", mode: "plan" }));
  await running.says(/"request_id":"m"/);
  running.write(control("b", { subtype: "set_permission_mode", mode: "bypass" }));
  await running.says(/"request_id":"b"/);
  running.write(control("x", { subtype: "make_tea" }));
  await running.says(/"request_id":"x"/);
  running.write(user("wait: 200\nwords: 100"));
  await running.says(/text_delta/);
  running.write(control("i", { subtype: "interrupt" }));
  const { stdout } = await running.endInput().outcome();
  const Answer = z.object({
    response: z.object({ subtype: z.string(), request_id: z.string(), error: z.string().optional() }),
  });
  const answers = new Map(
    linesOf(stdout)
      .filter(({ type }) => type === "control_response")
      .map((line) => Answer.parse(line).response)
      .map((response) => [response.request_id, response] as const),
  );
  assert.equal(answers.get("m")?.subtype, "success");
  assert.match(answers.get("b")?.error ?? "", /allow_bypass/);
  assert.match(answers.get("x")?.error ?? "", /there is no control request "make_tea"/);
  assert.equal(answers.get("i")?.subtype, "success");
  assert.equal(resultOf(stdout).subtype, "error_during_execution");
});

// design: 001.28
test("reports wrong usage when options exclude each other", async () => {
  for (const args of [
    ["--partial", "x"],
    ["--max-turns", "0", "x"],
    ["--resume", "a", "--continue", "x"],
    ["--output", "yaml", "x"],
    ["--input-format", "stream-json"],
  ]) {
    const { code } = await run(args).endInput().outcome();
    assert.equal(code, 2, args.join(" "));
  }
});

test("resumes a session by its title, and refuses a title of several", async () => {
  const start = async (title: string): Promise<string> => {
    const { stdout } = await completed(["--output", "json", "say: one"]);
    const { session_id: id } = resultOf(stdout);
    await runParley(cluster.home, ["sessions", "rename", id, title]);
    return id;
  };
  const id = await start("The garden");
  const resumed = await completed(["--output", "json", "--resume", "the garden", "say: two"]);
  assert.equal(resultOf(resumed.stdout).session_id, id);
  const other = await start("The garden");
  const refused = await completed(["--resume", "The garden", "say: never"]);
  assert.equal(refused.code, 1);
  assert.ok(refused.stderr.includes(id) && refused.stderr.includes(other), refused.stderr);
});

test("starts a new session with --new and continues a copy with --fork", async () => {
  const ask = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await completed(["--output", "json", ...args, "say: hi"]);
    assert.equal(stderr, "");
    return resultOf(stdout).session_id;
  };
  const named = await ask("--conversation", "work");
  assert.equal(await ask("--conversation", "work"), named);
  const fresh = await ask("--conversation", "work", "--new");
  assert.notEqual(fresh, named);
  assert.equal(await ask("--conversation", "work"), fresh);
  assert.notEqual(await ask("--resume", named, "--fork"), named);
});

test("sends files with the prompt", async () => {
  const file = join(cluster.home, "notes.txt");
  await writeFile(file, "remember the milk");
  const { stdout } = await completed(["--output", "json", "--attach", file, "say: read"]);
  const { session_id: id } = resultOf(stdout);
  const shown = await runParley(cluster.home, ["sessions", "show", id, "--json"]);
  assert.match(shown.stdout, /"name": ?"notes\.txt"/);
  const missing = await completed(["--attach", `${file}.none`, "say: never"]);
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /Cannot read the file/);
  const name = /"name": ?"notes\.txt"/;
  for (const [conversation, args] of [
    ["sent", ["send", "--attach", file, "say: sent"]],
    ["waited", ["send", "--attach", file, "--wait", "say: waited"]],
    ["piped", ["chat", "--attach", file]],
  ] as const) {
    const command = [...args, "--conversation", conversation];
    const { code, stderr } = await runParley(cluster.home, command, {
      input: conversation === "piped" ? "say: piped" : "",
    });
    assert.equal(code, 0, stderr);
    // Without --wait, the session begins only after the command has ended.
    await pollUntil(async () => {
      const shown = await runParley(cluster.home, ["sessions", "show", `http:default:${conversation}`, "--json"]);
      return name.test(shown.stdout);
    }, `the file in conversation ${conversation}`);
  }
  const refused = await parley(cluster.home, [
    "send",
    "--channel",
    "irc",
    "--to",
    "#x",
    "--attach",
    file,
    "hi",
  ]).outcome();
  assert.match(refused.stderr, /--attach applies to messages to the agent/);
});

// design: 003.48
test("works in the folder of --workspace, also when the session is continued", async () => {
  await writeFile(join(project, "note.txt"), "of the project");
  const read = ["--output", "stream-json", 'tool: read {"path":"note.txt"}\nthen\nsay: read'];
  const first = await completed(["--workspace", "project", ...read]);
  assert.match(first.stdout, /of the project/);
  const again = await completed(["--resume", resultOf(first.stdout).session_id, "--workspace", "project", ...read]);
  assert.match(again.stdout, /of the project/);
  assert.doesNotMatch((await completed(read)).stdout, /of the project/);
  const refused = await completed(["--workspace", "nowhere", ...read]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /there is no workspace "nowhere"; there are project/i);
});

// design: 003.48
test("continues the latest session of the folder when --workspace names one", async () => {
  const latest = await completed(["--workspace", "project", "--output", "json", "say: in the project"]);
  const { session_id: inProject } = Result.parse(JSON.parse(latest.stdout));
  const elsewhere = await completed(["--output", "json", "say: elsewhere"]);
  const { session_id: last } = Result.parse(JSON.parse(elsewhere.stdout));
  const again = async (...args: string[]) =>
    Result.parse(JSON.parse((await completed(["--continue", "--output", "json", ...args, "say: again"])).stdout))
      .session_id;
  assert.equal(await again("--workspace", "project"), inProject);
  assert.notEqual(inProject, last);
  const none = await completed(["--continue", "--workspace", "empty", "say: no"]);
  assert.match(none.stderr, /There is no session to continue in "empty"/);
});
