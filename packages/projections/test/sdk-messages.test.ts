// The invariants of the SDK-style stream, for arbitrary turns and lost live events.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExitReason, Message, SessionEvent } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { sdkMessages, SdkMessages } from "../src/sdk-messages.ts";
import { SdkSubagentMessages } from "../src/sdk-subagent.ts";
import { resultSubtypes, type SdkInit, type SdkMessage } from "../src/sdk-types.ts";
import { histories, priced, usage } from "./histories.ts";

const init: SdkInit = {
  sessionId: "s",
  model: "m",
  tools: ["ls"],
  permissionMode: "default",
  cwd: null,
  mcpServers: [],
  slashCommands: [],
  agents: [],
  skills: [],
  workspace: "bubblewrap",
  version: "0.1.0",
};

function stream(events: readonly SessionEvent[], partial = true): SdkMessage[] {
  return sdkMessages(
    init,
    events.map((event, at) => ({ event, atMs: 1_000 + at * 10 })),
    { partial },
  );
}

const runs = { numRuns: propertyRuns(10_000) };

test("names a tool in init, in calls and while waiting for it alike", () => {
  const turn = [
    { type: "turn.started", turnId: "t", inboxIds: [], attempt: 1 },
    { type: "turn.parked", turnId: "t", waitingFor: ["Agent"] },
  ] satisfies SessionEvent[];
  const messages = sdkMessages(
    { ...init, tools: ["Agent", "ls"] },
    turn.map((event) => ({ event, atMs: 1_000 })),
    { partial: false },
  );
  const [first] = messages;
  assert.deepEqual(first?.type === "system" && first.subtype === "init" && first.tools, ["sessions_spawn", "ls"]);
  const waiting = messages.flatMap((each) =>
    each.type === "system" && each.subtype === "status" ? (each.waiting_for ?? []) : [],
  );
  assert.deepEqual(waiting, ["sessions_spawn"]);
});

// design: 003.8
test("starts with exactly one init and ends with exactly one result", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      const messages = stream([...events, { type: "notice", turnId: "t", text: "too late" }]);
      assert.deepEqual(
        messages.flatMap((each, at) => (each.type === "system" && each.subtype === "init" ? [at] : [])),
        [0],
      );
      assert.deepEqual(
        messages.flatMap((each, at) => (each.type === "result" ? [at] : [])),
        [messages.length - 1],
      );
    }),
    runs,
  );
});

test("streams the tool calls of each reply as they are committed, after the results of earlier calls", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      let streamed: { id: string; input: string }[] = [];
      let open = 0;
      for (const each of stream(events)) {
        if (each.type === "assistant") {
          const calls = each.message.content.filter((block) => block.type === "tool_use");
          assert.deepEqual(
            streamed.map(({ id, input }) => [id, JSON.parse(input) as unknown] as const),
            calls.map(({ id, input }) => [id, input]),
          );
          streamed = [];
          open = calls.length;
        }
        if (each.type === "user" && each.isSynthetic !== true) open = 0;
        if (each.type !== "stream_event") continue;
        const { event } = each;
        if (event.type === "message_start") {
          assert.equal(open, 0, "a reply is streamed before the results of the calls of the one before it");
          streamed = [];
        }
        if (event.type === "content_block_start" && event.content_block.type === "tool_use") {
          streamed.push({ id: event.content_block.id, input: "" });
        }
        const last = streamed.at(-1);
        if (event.type === "content_block_delta" && event.delta.type === "input_json_delta" && last !== undefined) {
          last.input += event.delta.partial_json;
        }
      }
    }),
    runs,
  );
});

test("streams the whole text of each reply although deltas are lost", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      let text = "";
      for (const each of stream(events)) {
        if (each.type === "assistant") {
          const texts = each.message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
          assert.equal(text.replace(/ /g, ""), texts.join("").replace(/ /g, ""));
          text = "";
        }
        if (each.type !== "stream_event") continue;
        const { event } = each;
        if (event.type === "message_start") text = "";
        if (event.type === "content_block_delta" && event.delta.type === "text_delta") text += event.delta.text;
      }
    }),
    runs,
  );
});

test("streams one message with thinking, text and usage when its deltas arrive after it is committed", () => {
  const parts: Message["parts"] = [
    { type: "reasoning", text: "let me see" },
    { type: "text", text: "all done" },
  ];
  const message = { seq: 1, role: "assistant" as const, turnId: "t", parts, model: "m", createdAt: "" };
  const delta = { type: "text.delta" as const, turnId: "t", step: 1, attempt: 1 };
  const streamed = stream([
    { type: "message", seq: 1, message, usage },
    { ...delta, text: "all", offset: 0 },
    { ...delta, text: " done", offset: 3 },
    end,
  ]).flatMap((each): unknown[] => {
    if (each.type !== "stream_event") return [];
    const { event } = each;
    if (event.type === "content_block_delta") return [Object.values(event.delta)];
    return event.type === "message_delta" ? [event.usage.output_tokens] : [];
  });
  assert.deepEqual(streamed, [["thinking_delta", "let me see"], ["text_delta", "all done"], 5]);
});

test("shows the results of calls before the next reply when its first deltas overtake them", () => {
  const message = (seq: number, role: "assistant" | "tool", part: Message["parts"][number]): SessionEvent => {
    const of = { seq, role, turnId: "t", parts: [part], model: "m", createdAt: "" };
    return { type: "message", seq, message: of };
  };
  const delta = (text: string): SessionEvent => ({ type: "text.delta", turnId: "t", step: 2, attempt: 1, text });
  const outline = stream([
    message(1, "assistant", { type: "tool_call", id: "c", name: "ls", input: "{}" }),
    delta("wh"),
    delta("ole"),
    message(2, "tool", { type: "tool_result", id: "c", name: "ls", content: "a.txt", isError: false }),
    message(3, "assistant", { type: "text", text: "whole" }),
  ]).flatMap((each) => {
    if (each.type === "user") return ["result"];
    if (each.type !== "stream_event" || each.event.type !== "content_block_delta") return [];
    return each.event.delta.type === "text_delta" ? [each.event.delta.text] : [];
  });
  assert.deepEqual(outline, ["result", "wh", "ole"]);
});

test("calls a tool by its own name where the model wrote an alias", () => {
  const parts = [{ type: "tool_call" as const, id: "c", name: "Bash", input: '{"command":"ls"}' }];
  const message = { seq: 1, role: "assistant" as const, turnId: "t", parts, model: "m", createdAt: "" };
  const about = { turnId: "t", callId: "c", tool: "exec" };
  const messages = stream([
    { type: "message", seq: 1, message },
    { type: "tool.started", ...about, input: "{}" },
    { type: "tool.denied", ...about, reason: "no" },
    end,
  ]);
  const names = JSON.stringify(messages).match(/"(?:tool_)?name":"[^"]*"/g);
  assert.deepEqual(new Set(names), new Set(['"name":"exec"', '"tool_name":"exec"']));
});

test("adds up model calls, tokens and cost over the turns of a run", () => {
  const told = new SdkMessages(init, { partial: false });
  const turn = (turnId: string, seq: number): SdkMessage | undefined => {
    const message = { seq, role: "assistant" as const, turnId, parts: [], model: "m", createdAt: "" };
    told.event({ type: "message", seq, message }, 0);
    const finished: SessionEvent = {
      ...(end as Extract<SessionEvent, { type: "turn.finished" }>),
      turnId,
      seq: seq + 1,
    };
    return told.event(finished, 5).at(-1);
  };
  turn("a", 1);
  const result = turn("b", 3);
  assert.ok(result?.type === "result");
  assert.deepEqual([result.num_turns, result.total_cost_usd, result.usage.output_tokens], [2, 0.003, 10]);
  assert.deepEqual(result.modelUsage["m"]?.outputTokens, 10);
});

test("includes the models of sub-agents in those of the run", () => {
  const run = new SdkMessages(init, { partial: false });
  const said = (turnId: string, model: string): SessionEvent => {
    const message = { seq: 1, role: "assistant" as const, turnId, parts: [], model, createdAt: "" };
    return { type: "message", seq: 1, message };
  };
  const finished = (turnId: string): SessionEvent => ({
    ...(end as Extract<SessionEvent, { type: "turn.finished" }>),
    turnId,
    seq: 2,
  });
  for (const [sessionId, model] of [
    ["a", "small"],
    ["b", "m"],
  ] as const) {
    const subagent = new SdkSubagentMessages(init, { sessionId, toolUseId: "c", texts: false }, run);
    for (const event of [said(`of ${sessionId}`, model), finished(`of ${sessionId}`)]) subagent.event(event, 0);
  }
  run.event(said("t", "m"), 0);
  const result = run.event(finished("t"), 5).at(-1);
  assert.ok(result?.type === "result");
  const tokens = Object.entries(result.modelUsage).map(([model, { outputTokens }]) => [model, outputTokens]);
  assert.deepEqual(Object.fromEntries(tokens), { small: 5, m: 10 });
  assert.deepEqual([result.num_turns, result.usage.output_tokens], [1, 5], "those of the run itself");
});

test("counts the time in which tools run as no model time", () => {
  const told = new SdkMessages(init, { partial: false });
  const message = (seq: number, role: "assistant" | "tool", part: Message["parts"][number]): SessionEvent => {
    const parts = [part];
    return { type: "message", seq, message: { seq, role, turnId: "t", parts, model: "m", createdAt: "" } };
  };
  told.event({ type: "turn.started", turnId: "t", inboxIds: [], attempt: 1 }, 0);
  told.event(message(1, "assistant", { type: "tool_call", id: "c", name: "exec", input: "{}" }), 100);
  told.event(message(2, "tool", { type: "tool_result", id: "c", name: "exec", content: "", isError: false }), 700);
  const result = told.event(end, 1_000).at(-1);
  assert.ok(result?.type === "result");
  assert.deepEqual([result.duration_ms, result.duration_api_ms], [1_000, 400]);
});

// design: 003.8
test("answers every tool_use once, before the next model reply and in call order", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      let open: string[] = [];
      for (const each of stream(events)) {
        if (each.type === "assistant") {
          assert.deepEqual(open, []);
          open = each.message.content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
        }
        if (each.type === "user" && each.isSynthetic !== true) {
          const answered = each.message.content.flatMap((b) => (b.type === "tool_result" ? [b.tool_use_id] : []));
          assert.deepEqual(answered, open);
          open = [];
        }
        if (each.type === "result") assert.deepEqual(open, []);
      }
    }),
    runs,
  );
});

// design: 003.8
test("reports progress only for open calls, with one end before the result", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      const asked = new Set<string>();
      const running = new Set<string>();
      for (const each of stream(events)) {
        if (each.type === "assistant") {
          for (const block of each.message.content) if (block.type === "tool_use") asked.add(block.id);
        }
        if (each.type === "tool_progress") {
          assert.ok(asked.has(each.tool_use_id));
          assert.equal(running.has(each.tool_use_id), each.status !== "start");
          assert.deepEqual(
            each.progress,
            each.status === "progress" ? { done: 1, total: 2, message: "half" } : undefined,
          );
          assert.ok(each.elapsed_time_seconds >= 0);
          if (each.status === "start") running.add(each.tool_use_id);
          else if (each.status === "end") running.delete(each.tool_use_id);
        }
        if (each.type === "user" && each.isSynthetic !== true) assert.equal(running.size, 0);
      }
    }),
    runs,
  );
});

test("reports the start and the end of a call after its reply when they arrive before it", () => {
  const about = { turnId: "t", callId: "c", tool: "ls" };
  const call = { type: "tool_call" as const, id: "c", name: "ls", input: "{}" };
  const message = { seq: 1, role: "assistant" as const, turnId: "t", parts: [call], model: "m", createdAt: "" };
  const messages = stream([
    { type: "tool.started", ...about, input: "{}" },
    { type: "tool.finished", ...about, isError: false, content: "a.txt", durationMs: 7 },
    { type: "message", seq: 1, message },
    end,
  ]).filter(({ type }) => type !== "system" && type !== "stream_event");
  assert.deepEqual(
    messages.map((each) => (each.type === "tool_progress" ? [each.status, each.elapsed_time_seconds] : each.type)),
    ["assistant", ["start", 0], ["end", 0.007], "user", "result"],
  );
});

// design: 003.8
test("emits well-formed stream events that stop before their message", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      let message = false;
      let block: number | null = null;
      for (const each of stream(events)) {
        if (each.type === "assistant" || each.type === "result") assert.equal(message, false);
        if (each.type !== "stream_event") continue;
        const { event } = each;
        switch (event.type) {
          case "message_start":
            message = true;
            block = null;
            break;
          case "content_block_start":
            assert.ok(message && block === null);
            block = event.index;
            break;
          case "content_block_delta":
            assert.equal(block, event.index);
            break;
          case "content_block_stop":
            assert.equal(block, event.index);
            block = null;
            break;
          case "message_delta":
            assert.ok(message && block === null);
            break;
          case "message_stop":
            assert.ok(message && block === null);
            message = false;
            break;
          default:
            event satisfies never;
        }
      }
    }),
    runs,
  );
});

test("produces the same messages and unique ids for the same events, and ignores repetitions", () => {
  fc.assert(
    fc.property(histories, ({ events }) => {
      const once = stream(events);
      assert.deepEqual(stream(events), once);
      assert.equal(new Set(once.map(({ uuid }) => uuid)).size, once.length);
      assert.deepEqual(stream([...events, ...events]), once);
      assert.ok(stream(events, false).every(({ type }) => type !== "stream_event"));
    }),
  );
});

// design: 003.6
test("reports in the result how the turn ended", () => {
  fc.assert(
    fc.property(histories, ({ events, exitReason, answer }) => {
      const result = stream(events).at(-1);
      assert.ok(result?.type === "result");
      assert.ok(resultSubtypes.includes(result.subtype));
      assert.equal(result.subtype === "success", exitReason === "end_turn");
      assert.equal(result.is_error, exitReason !== "end_turn");
      assert.equal(result.result, answer);
      assert.equal(result.num_turns, events.filter(isAnswer).length - duplicates(events));
    }),
  );
});

const isAnswer = (event: SessionEvent) => event.type === "message" && event.message.role === "assistant";
function duplicates(events: readonly SessionEvent[]): number {
  return events.filter((event, at) => isAnswer(event) && events[at - 1] === event).length;
}

const end: SessionEvent = {
  type: "turn.finished",
  seq: 9,
  turnId: "t",
  state: "done",
  exitReason: "end_turn",
  text: "ok",
  usage,
  cost: priced,
};

// design: 003.6
test("names each way in which a turn ends by the subtype of the design's table", () => {
  const subtypes: Record<ExitReason, (typeof resultSubtypes)[number]> = {
    end_turn: "success",
    max_turns: "error_max_turns",
    max_budget: "error_max_budget_usd",
    max_tokens: "error_during_execution",
    interrupted: "error_during_execution",
    aborted: "error_during_execution",
    stop_sequence: "error_during_execution",
    refusal: "error_during_execution",
    error: "error_during_execution",
  };
  for (const [exitReason, subtype] of Object.entries(subtypes)) {
    const result = stream([{ ...end, exitReason: exitReason as ExitReason }]).at(-1);
    assert.ok(result?.type === "result");
    assert.equal(result.subtype, subtype, exitReason);
  }
});

// design: 003.41
test("reports the cost when every price is known, otherwise null", () => {
  const [, known] = stream([end]);
  const [, unknown] = stream([{ ...end, cost: { micros: 10, unpricedCalls: 1 } }]);
  assert.ok(known?.type === "result" && unknown?.type === "result");
  assert.equal(known.total_cost_usd, 0.0015);
  assert.equal(unknown.total_cost_usd, null);
  assert.deepEqual(known.usage, {
    input_tokens: 10,
    output_tokens: 5,
    cache_read_input_tokens: 2,
    cache_creation_input_tokens: 1,
  });
});

test("lists a denial with its tool call", () => {
  const about = { turnId: "t", approvalId: "A1", callId: "c", tool: "exec" };
  const parts = [{ type: "tool_call" as const, id: "c", name: "exec", input: '{"command":"ls"}' }];
  const message = { seq: 1, role: "assistant" as const, turnId: "t", parts, model: "m", createdAt: "" };
  const messages = stream([
    { type: "message", seq: 1, message },
    { type: "approval.requested", seq: 2, ...about, summary: "run ls", reason: "high risk", expiresAt: "" },
    { type: "approval.decided", seq: 3, ...about, allowed: false, by: "owner" },
    end,
  ]);
  const result = messages.at(-1);
  assert.ok(result?.type === "result");
  assert.deepEqual(result.permission_denials, [{ tool_name: "exec", tool_use_id: "c", tool_input: { command: "ls" } }]);
  assert.ok(messages.some((each) => each.type === "system" && each.subtype === "permission_request"));
});

test("lists a refusal by a rule as a denial, and a denial that is reported twice once", () => {
  const call = (id: string) => ({ type: "tool_call" as const, id, name: "exec", input: "{}" });
  const parts = [call("a"), call("b")];
  const message = { seq: 1, role: "assistant" as const, turnId: "t", parts, model: "m", createdAt: "" };
  const about = { turnId: "t", tool: "exec", callId: "b" };
  const messages = stream([
    { type: "message", seq: 1, message },
    { type: "tool.denied", ...about, callId: "a", reason: "Not allowed: the mode is plan." },
    { type: "approval.decided", seq: 2, ...about, approvalId: "A1", allowed: false, by: "owner" },
    { type: "tool.denied", ...about, reason: "Not run: denied by owner." },
    end,
  ]);
  const result = messages.at(-1);
  assert.ok(result?.type === "result");
  assert.deepEqual(
    result.permission_denials.map(({ tool_use_id }) => tool_use_id),
    ["a", "b"],
  );
});

test("reports a background sub-agent when its report arrives", () => {
  const from = {
    channel: "internal",
    account: "subagent",
    conversation: "k",
    contact: { id: "child" },
    role: "owner" as const,
    origin: "subagent" as const,
  };
  const text = '[sub-agent "look" (child) has not finished: max_turns]\n\nhalf of it';
  const message = {
    seq: 2,
    role: "user" as const,
    turnId: "t",
    parts: [{ type: "text" as const, text }],
    model: null,
    createdAt: "",
    from,
  };
  const messages = stream([
    { type: "subagent.started", turnId: "t", callId: "c", sessionId: "child", profile: "reader", mode: "background" },
    { type: "message", seq: 2, message },
  ]);
  const { uuid: _, session_id: __, ...told } = messages.at(-1) ?? assert.fail();
  assert.deepEqual(told, {
    type: "system",
    subtype: "task_notification",
    task_id: "child",
    tool_use_id: "c",
    status: "failed",
    output_file: "",
    summary: "half of it",
  });
});

// design: 003.6b
test("names the stop sequence that a reply reached, in the reply and in its stream", () => {
  const finish = { type: "finish" as const, reason: "stop_sequence", stopSequence: "##", at: "" };
  const said = [{ type: "text" as const, text: "half" }, finish];
  const message = { seq: 1, role: "assistant" as const, turnId: "t", parts: said, model: "m", createdAt: "" };
  const messages = stream([
    { type: "text.delta", turnId: "t", step: 1, attempt: 1, text: "half", offset: 0 },
    { type: "message", seq: 1, message },
  ]);
  const stops = messages.flatMap((each) => {
    if (each.type === "assistant") return [each.message.stop_sequence];
    return each.type === "stream_event" && each.event.type === "message_delta" ? [each.event.delta.stop_sequence] : [];
  });
  assert.deepEqual(stops, ["##", "##"]);
});

// design: 003.41
test("reports retries, compactions and sub-agents in the SDK's words", () => {
  const tokens = { strategy: "summarize", tokensBefore: 9, tokensAfter: 3 };
  const started = { sessionId: "child", profile: "reader", mode: "background" as const };
  const told = stream(
    [
      { type: "model.retry", turnId: "t", step: 1, attempt: 2, tries: 3, delayMs: 5, reason: "server: scripted 500" },
      { type: "model.retry", turnId: "t", step: 1, attempt: 3, delayMs: 5, reason: "stalled: no data" },
      { type: "subagent.started", turnId: "t", callId: "c", ...started, description: "look around" },
      { type: "subagent.started", turnId: "t", callId: "of an older version", ...started },
      { type: "compacted", seq: 2, turnId: "t", trigger: "share", ...tokens },
      { type: "compacted", seq: 3, turnId: "t", trigger: "demand", ...tokens },
    ],
    false,
  );
  const fields = told.flatMap((each): unknown[] => {
    if (each.type !== "system") return [];
    if (each.subtype === "api_retry") return [[each.attempt, each.max_retries, each.error, each.details]];
    if (each.subtype === "task_started") return [[each.description, each.subagent_type, each.is_backgrounded]];
    return each.subtype === "compact_boundary" ? [[each.compact_metadata.trigger, each.compact_metadata.cause]] : [];
  });
  assert.deepEqual(fields, [
    [1, 2, "server_error", "server: scripted 500"],
    [2, 0, "unknown", "stalled: no data"],
    ["look around", "reader", true],
    ["reader", "reader", true],
    ["auto", "share"],
    ["manual", "demand"],
  ]);
});

test("reports a denied call when its live event was lost or arrived before the call, and no call of an unknown tool", () => {
  const call = (id: string) => ({ type: "tool_call" as const, id, name: "exec", input: "{}" });
  const refused = (id: string, content: string) =>
    ({ type: "tool_result", id, name: "exec", content, isError: true, refused: true }) as const;
  const about = { turnId: "t", model: "m", createdAt: "" };
  const early: SessionEvent = { type: "tool.denied", turnId: "t", callId: "a", tool: "exec", reason: "Not allowed" };
  const events: SessionEvent[] = [
    { type: "message", seq: 1, message: { seq: 1, role: "assistant", parts: [call("a"), call("b")], ...about } },
    {
      type: "message",
      seq: 2,
      message: {
        seq: 2,
        role: "tool",
        parts: [refused("a", "Not allowed"), refused("b", "Tool not found: x.")],
        ...about,
      },
    },
    end,
  ];
  for (const messages of [stream(events), stream([early, ...events])]) {
    const denials = messages.flatMap((each, at) => {
      const isDenial = each.type === "system" && each.subtype === "permission_denied";
      return isDenial ? [[each.tool_use_id, each.message, messages[at - 1]?.type, messages[at + 1]?.type]] : [];
    });
    assert.deepEqual(denials, [["a", "Not allowed", "assistant", "user"]]);
    const result = messages.at(-1);
    assert.ok(result?.type === "result");
    assert.deepEqual(
      result.permission_denials.map(({ tool_use_id, tool_input }) => [tool_use_id, tool_input]),
      [["a", {}]],
    );
  }
});
