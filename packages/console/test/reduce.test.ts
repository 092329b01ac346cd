// The chat as a fold of events: what is on the screen after any history, with lost and repeated events and reconnections.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Message, SessionEvent } from "@parley/contracts";
import fc from "fast-check";
import { prepend, reduce } from "../src/chat/reduce.ts";
import { emptyChat, type ChatState } from "../src/chat/state.ts";
import { deltasOf, join } from "../src/chat/stream.ts";
import { readableInput } from "../src/chat/tool-summary.ts";

const turnId = "turn-1";
const noUsage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
const at = "2026-01-01T00:00:00.000Z";

function fold(events: readonly SessionEvent[], from: ChatState = emptyChat): ChatState {
  return events.reduce((state, event) => reduce(state, event, 0), from);
}

function message(seq: number, role: Message["role"], parts: Message["parts"], turn = turnId): SessionEvent {
  return { type: "message", seq, message: { seq, role, turnId: turn, parts, model: null, createdAt: at } };
}

function finished(seq: number, text: string, turn = turnId): SessionEvent {
  const cost = { micros: 0, unpricedCalls: 0 };
  return {
    type: "turn.finished",
    seq,
    turnId: turn,
    state: "done",
    exitReason: "end_turn",
    text,
    usage: noUsage,
    cost,
  };
}

function deltas(text: string, cuts: readonly number[], step = 1): SessionEvent[] {
  const ends = [...new Set([...cuts.map((cut) => cut % (text.length + 1)), text.length])].toSorted((a, b) => a - b);
  let offset = 0;
  return ends.flatMap((end): SessionEvent[] => {
    const part = text.slice(offset, end);
    const delta: SessionEvent = { type: "text.delta", turnId, step, attempt: 1, text: part, offset };
    offset = end;
    return part === "" ? [] : [delta];
  });
}

/** The text of the conversation on the screen, with the streaming text. */
function screen(state: ChatState): string {
  const said = state.items.map((item) => {
    if (item.kind === "assistant") return item.blocks.map((block) => ("text" in block ? block.text : "")).join("");
    return "text" in item ? item.text : "";
  });
  return [...said, state.live?.text ?? ""].join("");
}

const text = fc.string({ minLength: 1, maxLength: 200 });
const cuts = fc.array(fc.nat(), { maxLength: 12 });

describe("streamed text", () => {
  test("is complete when every delta arrives, and replaced by the committed message", () => {
    fc.assert(
      fc.property(text, cuts, (whole, at) => {
        const streamed = fold([{ type: "turn.started", turnId, inboxIds: [], attempt: 1 }, ...deltas(whole, at)]);
        assert.equal(screen(streamed), whole);
        const committed = fold([message(1, "assistant", [{ type: "text", text: whole }])], streamed);
        assert.equal(screen(committed), whole);
        assert.equal(committed.live, null);
      }),
    );
  });

  test("never doubles or invents a character when deltas are lost, repeated or late", () => {
    fc.assert(
      fc.property(text, cuts, fc.array(fc.nat(), { maxLength: 30 }), (whole, at, order) => {
        const all = deltas(whole, at);
        const received = order.flatMap((index) => all[index % Math.max(1, all.length)] ?? []);
        const state = fold(received);
        assert.ok(whole.startsWith(state.live?.text ?? ""), JSON.stringify(state.live));
      }),
    );
  });

  test("is complete after a reconnection at any point, from the durable events", () => {
    const history = (whole: string, at: readonly number[]): SessionEvent[] => [
      message(1, "user", [{ type: "text", text: "question" }]),
      { type: "turn.started", turnId, inboxIds: [], attempt: 1 },
      ...deltas(whole, at),
      message(2, "assistant", [{ type: "text", text: whole }]),
      finished(3, whole),
    ];
    fc.assert(
      fc.property(text, cuts, fc.nat(), fc.nat(), (whole, at, lostFrom, lostCount) => {
        const events = history(whole, at);
        const begin = lostFrom % events.length;
        const end = Math.min(events.length, begin + (lostCount % events.length));
        const before = fold(events.slice(0, begin));
        // The gateway repeats the durable events after the last seq, then the live ones go on.
        const missed = events.slice(0, end).filter((event) => "seq" in event && event.seq > before.seq);
        const after = fold([...missed, ...events.slice(end)], before);
        assert.equal(screen(after), screen(fold(events)));
        assert.equal(after.turn, null);
        assert.equal(after.live, null);
      }),
    );
  });

  test("counts every durable event once when events are repeated", () => {
    const events = [
      message(1, "user", [{ type: "text", text: "a" }]),
      message(2, "assistant", [{ type: "text", text: "b" }]),
    ];
    assert.deepEqual(fold([...events, ...events]).items, fold(events).items);
  });

  test("begins again when the call is repeated after a takeover", () => {
    const first = fold(deltas("the first answer", []));
    const again = fold(deltas("another", []), first);
    assert.equal(again.live?.text, "another");
  });

  test("shows a gap until the message is committed", () => {
    const [, second] = deltas("hello world", [5]);
    assert.ok(second !== undefined);
    const state = fold([second]);
    assert.equal(state.live?.hasGap, true);
    const filled = fold([{ type: "text.delta", turnId, step: 1, attempt: 1, text: "hello world", offset: 0 }], state);
    assert.equal(filled.live?.text, "hello world");
    assert.equal(filled.live.hasGap, false);
  });

  test("is complete when the page joins in the middle and reads what was written", () => {
    fc.assert(
      fc.property(text, cuts, fc.nat(), fc.nat(), (whole, at, joinsAt, readsAt) => {
        const all = deltas(whole, at);
        const first = joinsAt % all.length;
        const read = first + (readsAt % (all.length - first));
        const written = all.slice(0, read + 1).map((event) => (event.type === "text.delta" ? event.text : ""));
        const call = { turnId, step: 1, attempt: 1, text: written.join(""), reasoning: "", tools: [] };
        // What was written arrives after deltas that are newer.
        const events = [...all.slice(first, read + 1), ...all.slice(read + 1), ...deltasOf(call)];
        const state = fold(events);
        assert.equal(state.live?.text, whole);
        assert.equal(state.live.hasGap, false);
      }),
    );
  });

  test("shows the arguments of calls while they are written, until the message is committed", () => {
    const input = '{"path":"a"}';
    const part = (from: number, to: number): SessionEvent => {
      const at = { turnId, step: 1, attempt: 1, callId: "c1", tool: "write" };
      return { type: "tool.input", ...at, text: input.slice(from, to), offset: from };
    };
    const state = fold([part(0, 4), part(8, 12), part(4, 8), part(4, 8)]);
    assert.deepEqual(state.live?.calls, [{ callId: "c1", tool: "write", input }]);
    const call = message(1, "assistant", [{ type: "tool_call", id: "c1", name: "write", input }]);
    assert.equal(fold([call], state).live, null);
    assert.equal(readableInput(String.raw`{"text":"a\nb\"`), '{"text":"a\nb"');
  });

  test("ignores deltas of a committed step and of an ended turn", () => {
    const late = deltas("late", []);
    const committed = fold([...deltas("late", []), message(1, "assistant", [{ type: "text", text: "late" }]), ...late]);
    assert.equal(committed.live, null);
    const ended = fold([message(1, "assistant", [{ type: "text", text: "late" }]), finished(2, "late"), ...late]);
    assert.equal(ended.live, null);
    assert.equal(ended.turn, null);
  });

  test("joins parts at their offset", () => {
    assert.equal(join("abc", "def"), "abcdef");
    assert.equal(join("abc", "cd", 2), "abcd");
    assert.equal(join("abc", "b", 1), "abc");
    assert.equal(join("abc", "x", 4), null);
  });
});

describe("tool calls", () => {
  const call = message(1, "assistant", [{ type: "tool_call", id: "c1", name: "exec", input: '{"command":"ls"}' }]);
  const result = message(2, "tool", [{ type: "tool_result", id: "c1", name: "exec", content: "ok", isError: false }]);

  test("keep the result of the log when live events come late or never", () => {
    const state = fold([call, result, { type: "tool.started", turnId, callId: "c1", tool: "exec", input: "{}" }]);
    assert.equal(state.tools.get("c1")?.state, "done");
    assert.equal(state.tools.get("c1")?.output, "ok");
    assert.equal(state.tools.get("c1")?.input, '{"command":"ls"}');
  });

  test("show the question until it is decided", () => {
    const asked: SessionEvent = {
      type: "approval.requested",
      seq: 2,
      turnId,
      approvalId: "AB12",
      callId: "c1",
      tool: "exec",
      summary: "ls",
      reason: "rule",
      expiresAt: at,
    };
    const state = fold([call, asked]);
    assert.equal(state.approvals.get("c1")?.decision, null);
    assert.equal(state.approvals.get("c1")?.mayAlways, true);
    assert.equal(fold([call, { ...asked, mayAlways: false }]).approvals.get("c1")?.mayAlways, false);
    const decided = fold(
      [
        {
          type: "approval.decided",
          seq: 3,
          turnId,
          approvalId: "AB12",
          callId: "c1",
          tool: "exec",
          allowed: true,
          by: "o",
        },
      ],
      state,
    );
    assert.deepEqual(decided.approvals.get("c1")?.decision, { allowed: true, by: "o" });
  });

  test("are kept when earlier messages are added in front", () => {
    const recent = fold([{ type: "message", seq: 9, message: { ...asMessage(result), seq: 9 } }]);
    const whole = prepend(recent, [asMessage(call)]);
    assert.deepEqual(
      whole.items.map(({ seq }) => seq),
      [1],
    );
    assert.equal(whole.tools.get("c1")?.output, "ok");
    assert.equal(whole.seq, 9);
  });
});

function asMessage(event: SessionEvent): Message {
  assert.ok(event.type === "message");
  return event.message;
}
