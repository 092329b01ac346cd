// The preset `goat`, section by section of its design: the state machine with its exits, permissions, hooks, budgets.
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { store } from "@parley/contracts";
import { Cleanup } from "@parley/testing";
import { pollUntil } from "@parley/testing/until";
import { writeDocument } from "../support/jobs.ts";
import { rolesOf, spawning, startClusterFixture, textsOf, type ClusterFixture } from "./support/fixture.ts";

const cleanup = new Cleanup();
let fixture: ClusterFixture;

/** A hook for every event of the loop writes the event's name to a file; one denies, one continues the turn once. */
const hooks = `
${[
  "SessionStart",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PermissionRequest",
  "PreCompact",
  "SubagentStart",
  "SubagentStop",
  "Notification",
  "SessionEnd",
]
  .map((event) => `[[hooks]]\nevent = "${event}"\ncommand = "cat > /dev/null; echo ${event} >> hooks.log"\n`)
  .join("")}
[[hooks]]
name = "sources"
event = "SessionStart"
command = '''grep -o '"source":"[a-z]*"' >> sources.log'''
[[hooks]]
name = "no-secrets"
event = "PreToolUse"
matcher = "write"
command = '''if grep -q secret.txt; then echo "secrets are not written" >&2; exit 2; fi'''
[[hooks]]
name = "go-on"
event = "Stop"
command = '''if grep -q '"stop_hook_active":false' && test -e go-on; then echo '{"decision":"block","reason":"check again"}'; fi; echo Stop >> hooks.log'''
`;

before(async () => {
  fixture = await startClusterFixture(cleanup, "goat", {
    processes: [],
    isolation: "auto",
    settings: `
[limits]
max_iterations = 6
max_usd = 2
[models.known.rehearsal]
price = { input = 1, output = 1 }
${hooks}
`,
  });
});
after(() => cleanup[Symbol.asyncDispose]());

/** Calls of medium risk then run without approval in this conversation. */
async function acceptEdits(conversation: string): Promise<void> {
  await fixture.client.ask("/mode accept_edits", conversation);
}

async function hookLog(): Promise<string[]> {
  const text = await readFile(join(fixture.cluster.home, "hooks.log"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

describe("initialise", () => {
  // design: 003.1, 003.23
  test("runs session and prompt hooks before the first model call and logs the prompt", async () => {
    const turn = await fixture.turn("say: hello", "init");
    assert.deepEqual((await hookLog()).slice(0, 2), ["SessionStart", "UserPromptSubmit"]);
    assert.equal(rolesOf(turn.messages), "user assistant");
    assert.deepEqual([turn.state, turn.exitReason, turn.text], ["done", "end_turn", "hello"]);
  });

  // design: 003.1
  test("gives the words of the start hooks to the first request, which has 16,384 tokens", async () => {
    const saying = (event: string) => {
      const output = { hookSpecificOutput: { hookEventName: event, additionalContext: `words of ${event}` } };
      return `[[hooks]]\nevent = "${event}"\ncommand = ${JSON.stringify(`echo '${JSON.stringify(output)}'`)}\n`;
    };
    const started = await startClusterFixture(cleanup, "goat", {
      processes: [],
      model: true,
      settings: ["SessionStart", "UserPromptSubmit"].map(saying).join(""),
    });
    await started.turn("say: hello");
    assert.equal(started.cluster.strict?.requests.length, 1);
    const { messages, maxTokens } = started.lastRequest();
    assert.match(messages.join("\n"), /say: hello[\s\S]*words of SessionStart[\s\S]*words of UserPromptSubmit/);
    assert.equal(maxTokens, 16_384);
  });

  test("runs no start hooks when a session continues", async () => {
    const before = (await hookLog()).length;
    await fixture.turn("say: again", "init");
    assert.deepEqual((await hookLog()).slice(before), ["UserPromptSubmit", "Stop"]);
  });
});

// design: 003.23b
test("tells the start hooks whether a session is new, follows another one, was returned to or is a copy", async () => {
  const sources = async () => {
    const text = await readFile(join(fixture.cluster.home, "sources.log"), "utf8");
    return Array.from(text.matchAll(/:"([a-z]+)"/g), ([, source]) => source);
  };
  const first = await fixture.turn("say: the first", "sources");
  const before = (await sources()).length - 1;
  const commands = ["/new", `/session resume ${first.sessionId}`, "/session fork the copy", "/status"];
  for (const command of commands) {
    await fixture.client.ask(command, "sources");
    await fixture.turn("say: next", "sources");
  }
  assert.deepEqual((await sources()).slice(before), ["startup", "clear", "resume", "fork"]);
});

// design: 003.9
test("runs its hook when a conversation leaves its session", async () => {
  await fixture.turn("say: hello", "leave");
  await fixture.client.ask("/new", "leave");
  await pollUntil(async () => (await hookLog()).includes("SessionEnd"), "SessionEnd");
});

describe("exit of a turn", () => {
  // design: 003.2
  test("ends when the limit of model calls is reached", async () => {
    const rounds = Array.from({ length: 10 }, (_, index) => `tool: read {"path":"x${index}.txt"}`);
    const turn = await fixture.turn([...rounds, "say: never"].join("\nthen\n"), "turns");
    assert.deepEqual([turn.state, turn.exitReason, turn.modelSteps], ["failed", "max_turns", 6]);
  });

  // design: 003.2
  test("ends when its budget is exactly reached", async () => {
    const turn = await fixture.turn("usage: 2000000 0\ntool: ls {}\nthen\nsay: never", "budget");
    assert.deepEqual([turn.exitReason, turn.modelSteps, turn.cost.micros], ["max_budget", 1, 2_000_000]);
    assert.match(turn.text ?? "", /\$2\.00/);
  });

  test("ends when its sub-agent has used up the budget", async () => {
    const prompt = "usage: 2500000 0\nsay: that was dear";
    await acceptEdits("child-budget");
    const turn = await fixture.turn(`${spawning("Agent", { prompt })}\nthen\nsay: never`, "child-budget");
    assert.deepEqual([turn.exitReason, turn.modelSteps], ["max_budget", 1]);
    assert.match(turn.results[0]?.content ?? "", /^that was dear\n/);
    const told = await fixture.happens((event) => event.type === "turn.finished" && event.turnId === turn.turnId);
    assert.ok(told.type === "turn.finished");
    assert.deepEqual(told.treeCost, { micros: turn.cost.micros + 2_500_000, unpricedCalls: 0 });
    const { events } = await fixture.bus.request(store.eventList, {
      sessionId: turn.sessionId,
      afterSeq: 0,
      limit: 50,
    });
    assert.deepEqual(events.at(-1), told);
  });

  // design: 003.4
  test("drops unfinished calls of a cut answer and ends when nothing can be compacted", async () => {
    const turn = await fixture.turn(
      'say: half of it\ntool: write {"path":"cut.txt","content":"x"}\nstop: max_tokens',
      "cut",
    );
    assert.equal(turn.exitReason, "max_tokens");
    assert.match(turn.text ?? "", /half of it[\s\S]*cut off/);
    assert.ok(turn.messages.every(({ parts }) => parts.every(({ type }) => type !== "tool_call")));
  });

  // design: 003.5
  test("ends with its own reason when the model reaches a stop sequence or refuses", async () => {
    assert.equal((await fixture.turn("say: here\nstop: stop_sequence", "stops")).exitReason, "stop_sequence");
    assert.equal((await fixture.turn("say: no\nstop: refusal", "stops")).exitReason, "refusal");
  });

  test("ends when a person interrupts it", async () => {
    const { sessionId } = await fixture.turn("say: ready", "interrupt");
    const message = await fixture.client.post("wait: 20\nwords: 5000", { conversation: "interrupt" });
    const turnId = await fixture.begun(message);
    await fixture.happens((event) => event.type === "text.delta" && event.turnId === turnId);
    await fixture.stop(sessionId);
    const turn = await fixture.ended(message);
    assert.deepEqual([turn.state, turn.exitReason], ["cancelled", "interrupted"]);
  });

  // design: 003.39, switch.12
  test("ends with the model's error after three attempts", async () => {
    const turn = await fixture.turn("fail: overloaded always\nsay: never", "error");
    assert.deepEqual([turn.state, turn.exitReason], ["failed", "error"]);
    const retries = (await fixture.eventsOf(turn.turnId)).filter(({ type }) => type === "model.retry");
    assert.equal(retries.length, 2);
  });
});

describe("end of a turn", () => {
  // design: 003.3, 003.26
  test("continues with the reason of a Stop hook, but not for ever", async () => {
    const marker = join(fixture.cluster.home, "go-on");
    await writeFile(marker, "");
    const turn = await fixture.turn("say: done?", "stop-hook");
    await rm(marker);
    assert.deepEqual([turn.exitReason, turn.modelSteps], ["end_turn", 2]);
    assert.ok(textsOf(turn.messages).some((text) => text.includes("check again")));
  });
});

describe("tools", () => {
  // design: 003.19, preset.5
  test("runs reading tools without approval, and a command only after approval", async () => {
    const script = 'tool: ls {}\nthen\ntool: exec {"command":"echo yes > asked.txt"}\nthen\nsay: run';
    const message = await fixture.client.post(script, { conversation: "ask" });
    const turnId = await fixture.begun(message);
    await fixture.happens((event) => event.type === "turn.parked" && event.turnId === turnId);
    await fixture.answer(turnId, true);
    const turn = await fixture.ended(message);
    assert.deepEqual([turn.text, turn.results.map(({ isError }) => isError)], ["run", [false, false]]);
    assert.equal(await readFile(join(fixture.cluster.home, "workspace", "asked.txt"), "utf8"), "yes\n");
    assert.ok((await hookLog()).includes("PermissionRequest"));
  });

  // design: 003.20, preset.5
  test("asks before a call of medium or higher risk when commands are isolated as installed", async () => {
    const calls = [
      'tool: read {"path":"none.txt"}',
      'tool: write {"path":"medium.txt","content":"x"}',
      'tool: web_fetch {"url":"https://example.org/"}',
      'tool: exec {"command":"touch high.txt"}',
      spawning("Agent", { prompt: "say: never" }),
      'tool: memory_write {"content":"low"}',
    ];
    const steps = [calls.slice(0, 3), calls.slice(3), ["say: over"]].map((lines) => lines.join("\n"));
    const message = await fixture.client.post(steps.join("\nthen\n"), { conversation: "risks" });
    const turnId = await fixture.begun(message);
    const asked: string[] = [];
    for (const _ of [1, 2, 3, 4]) {
      const isNew = (id: string) => !asked.some((each) => each.endsWith(id));
      const question = await fixture.happens(
        (event) => event.type === "approval.requested" && event.turnId === turnId && isNew(event.approvalId),
      );
      assert.ok(question.type === "approval.requested");
      asked.push(`${question.tool} ${question.approvalId}`);
      const answer = { id: question.approvalId, allow: false, always: false, by: "test" };
      await fixture.bus.request(store.approvalDecide, answer);
    }
    assert.equal((await fixture.ended(message)).text, "over");
    assert.deepEqual(
      asked.map((each) => each.split(" ")[0]),
      ["write", "web_fetch", "exec", "Agent"],
    );
  });

  test("continues with a denial as the result when a person denies a call", async () => {
    const message = await fixture.client.post('tool: exec {"command":"touch no.txt"}\nthen\nsay: alright', {
      conversation: "ask",
    });
    await fixture.answer(await fixture.begun(message), false);
    const turn = await fixture.ended(message);
    assert.equal(turn.text, "alright");
    assert.match(turn.results[0]?.content ?? "", /denied by/);
  });

  // design: 003.18b, 003.37
  test("asks before a command that the loaded skill lists in allowed-tools", async () => {
    const content =
      "---\nname: release\ndescription: Makes a release.\nallowed-tools: Bash, exec\n---\nRun the command.\n";
    await writeDocument(fixture.client, { path: "skills/release/SKILL.md", content });
    const script =
      'tool: Skill {"skill":"release"}\nthen\ntool: exec {"command":"touch released.txt"}\nthen\nsay: over';
    const message = await fixture.client.post(script, { conversation: "skill" });
    await fixture.answer(await fixture.begun(message), false);
    const { results } = await fixture.ended(message);
    assert.match(results[0]?.content ?? "", /^Skill release[^]*Run the command\./);
    assert.match(results[1]?.content ?? "", /denied by/);
  });

  // design: 003.15
  test("returns a hook's reason when the hook denies a call", async () => {
    const turn = await fixture.turn('tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: understood', "hooked");
    assert.match(turn.results[0]?.content ?? "", /secrets are not written/);
    assert.equal(turn.text, "understood");
  });

  // design: 003.17
  test("edits only the given cells of a notebook, by the tool's names in this preset", async () => {
    const cells = [
      { cell_type: "code", execution_count: 1, id: "first", metadata: {}, outputs: [], source: ["a = 1"] },
    ];
    const file = join(fixture.cluster.home, "workspace", "work.ipynb");
    const text = JSON.stringify({ cells, metadata: {}, nbformat: 4, nbformat_minor: 5 }, null, 1);
    await writeFile(file, text);
    await acceptEdits("notebook");
    const edit = (args: object) => `tool: NotebookEdit ${JSON.stringify({ notebook_path: "work.ipynb", ...args })}`;
    const message = await fixture.client.post(
      [
        'tool: Read {"file_path":"work.ipynb"}',
        edit({ cell_id: "first", new_source: "a = 2" }),
        edit({ cell_id: "first", cell_type: "markdown", edit_mode: "insert", new_source: "It is two." }),
        'tool: Read {"file_path":"work.ipynb"}',
        "say: edited",
      ].join("\nthen\n"),
      { conversation: "notebook" },
    );
    const turn = await fixture.ended(message);
    assert.deepEqual(
      turn.results.map(({ content }) => content.replaceAll(/^ *\d+\t/gm, "").replace(/id [0-9a-f]{8}\b/, "id NEW")),
      [
        "[cell 1: code, id first, run as [1]]\na = 1",
        'Replaced cell 1 (code, id first) of "work.ipynb". Its outputs were cleared.',
        'Inserted cell 2 (markdown, id NEW) in "work.ipynb". The notebook now has 2 cells; the numbers of later cells increase by one.',
        "[cell 1: code, id first]\na = 2\n\n[cell 2: markdown, id NEW]\nIt is two.",
      ],
    );
    const changed = text.replace('"execution_count": 1', '"execution_count": null').replace("a = 1", "a = 2");
    assert.ok((await readFile(file, "utf8")).startsWith(changed.slice(0, changed.indexOf("\n ],"))));
  });

  // design: 003.15
  test("runs the hooks of each call in order, and the failure hook when a call fails", async () => {
    const before = (await hookLog()).length;
    await fixture.turn('tool: read {"path":"none.txt"}\ntool: ls {}\nthen\nsay: ok', "order");
    const [, , ...rest] = (await hookLog()).slice(before);
    assert.deepEqual(rest, ["PreToolUse", "PostToolUseFailure", "PreToolUse", "PostToolUse", "Stop"]);
  });
});

describe("control during a turn", () => {
  // design: 003.22b
  test("applies a new permission mode and model from the next call on", async () => {
    const { sessionId } = await fixture.turn("say: before", "control");
    const overrides = { permissionMode: "dont_ask", model: "rehearsal:other" } as const;
    await fixture.bus.request(store.sessionUpdate, { sessionId, overrides });
    const turn = await fixture.turn(
      'tool: exec {"command":"touch unasked.txt"}\nthen\nsay: nobody was asked',
      "control",
    );
    assert.match(turn.results[0]?.content ?? "", /this session does not request approval/);
    assert.match(turn.messages.at(-1)?.model ?? "", /other/);
    await fixture.bus.request(store.sessionUpdate, { sessionId, overrides: { permissionMode: "plan" } });
    const planned = await fixture.turn(
      'tool: write {"path":"free.txt","content":"y"}\nthen\nsay: only a plan',
      "control",
    );
    assert.match(planned.results[0]?.content ?? "", /plan mode/);
  });

  // design: 003.17b
  test("ends the plan mode when a person approves the plan", async () => {
    await fixture.client.ask("/mode plan", "plan");
    const script =
      'tool: ExitPlanMode {"plan":"write it"}\nthen\ntool: write {"path":"planned.txt","content":"y"}\nthen\nsay: ok';
    const message = await fixture.client.post(script, { conversation: "plan" });
    const turnId = await fixture.begun(message);
    await fixture.answer(turnId, true);
    const later = await fixture.happens(
      (event) => event.type === "approval.requested" && event.turnId === turnId && event.tool === "write",
    );
    assert.ok(later.type === "approval.requested");
    const yes = { allow: true, always: false, by: "test" };
    await fixture.bus.request(store.approvalDecide, { id: later.approvalId, ...yes });
    const turn = await fixture.ended(message);
    assert.match(turn.results[0]?.content ?? "", /^The plan is approved, and the permission mode is default\./);
    assert.equal(await readFile(join(fixture.cluster.home, "workspace", "planned.txt"), "utf8"), "y");
    assert.equal((await fixture.session("http:default:plan")).overrides.permissionMode, undefined);
  });
});

describe("sub-agents", () => {
  // design: 002.33, 003.31, 003.32, 003.33
  test("waits for the result of Agent, whose kinds have their own tools and start no agents", async () => {
    await acceptEdits("agents");
    const prompt = `tool: write {"path":"e.txt","content":"x"}\n${spawning("Agent", { prompt: "say: deeper" })}\nthen\nsay: only looked`;
    const turn = await fixture.turn(
      `${spawning("Agent", { description: "look", prompt, subagent_type: "explore" })}\nthen\nsay: ok`,
      "agents",
    );
    assert.match(turn.results[0]?.content ?? "", /^only looked\n/);
    const [child] = await fixture.children(turn.sessionId);
    const refused = (await fixture.log(child?.sessionId ?? "")).flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool_result" ? [part.content] : [])),
    );
    assert.match(refused.join("\n"), /Tool not found: write[\s\S]*Tool not found: Agent/);
    const log = await hookLog();
    assert.ok(log.includes("SubagentStart") && log.includes("SubagentStop"));
  });

  // design: 003.33
  test("does not offer Agent to a sub-agent with all tools", async () => {
    await acceptEdits("nested");
    const prompt = `${spawning("Agent", { prompt: "say: deeper" })}\nthen\nsay: I could not`;
    const turn = await fixture.turn(`${spawning("Agent", { prompt })}\nthen\nsay: ok`, "nested");
    assert.match(turn.results[0]?.content ?? "", /^I could not\n/);
    const [child] = await fixture.children(turn.sessionId);
    assert.equal(child?.profile, "general-purpose");
    const [refused] = (await fixture.log(child.sessionId)).flatMap(({ parts }) =>
      parts.filter((part) => part.type === "tool_result"),
    );
    assert.match(refused?.content ?? "", /^Tool not found: Agent\..* write/);
    assert.deepEqual(await fixture.children(child.sessionId), []);
  });

  // design: 003.31
  test("returns immediately for a background agent and delivers its result later", async () => {
    await acceptEdits("background");
    const turn = await fixture.turn(
      `${spawning("Agent", { prompt: "say: found in the background", run_in_background: true })}\nthen\nsay: meanwhile`,
      "background",
    );
    assert.equal(turn.text, "meanwhile");
    await fixture.happens(
      (event) =>
        event.type === "message" &&
        event.message.from?.origin === "subagent" &&
        textsOf([event.message])[0]?.includes("found in the background") === true,
    );
  });
});

describe("compaction", () => {
  // design: 003.27
  test("runs its hook and summarises old messages at four fifths of the window", async () => {
    const small = await startClusterFixture(cleanup, "goat", {
      processes: [],
      settings: `
[agent]
max_output_tokens = 2000
[models.known.rehearsal]
context_window = 30000
[[hooks]]
event = "PreCompact"
command = "cat > /dev/null; echo PreCompact >> hooks.log"
`,
    });
    let last = "";
    for (let index = 0; index < 12; index += 1) {
      const turn = await small.turn(`words: 1500`, "small");
      assert.equal(turn.state, "done");
      last = turn.sessionId;
    }
    const event = await small.happens((each) => each.type === "compacted");
    assert.ok(event.type === "compacted" && event.trigger === "share" && event.strategy === "summarize");
    assert.ok(event.tokensAfter < event.tokensBefore * 0.6);
    assert.equal((await small.log(last)).filter(({ role }) => role === "user").length, 12);
    const written = await readFile(join(small.cluster.home, "hooks.log"), "utf8");
    assert.match(written, /PreCompact/);
  });
});
