// Generates the events of turns: model calls with retries, tool rounds, parked approvals, sub-agents, compactions and all exit reasons.
// Live events may be missing, durable ones may be duplicated.
import type { ExitReason, Message, Part, SessionEvent } from "@parley/contracts";
import fc from "fast-check";

export const usage = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 2, cacheWriteTokens: 1 };
export const priced = { micros: 1_500, unpricedCalls: 0 };

interface Round {
  texts: string[];
  retried: boolean;
  failover: boolean;
  calls: { tool: string; isError: boolean; approval: "none" | "yes" | "no"; task: boolean }[];
  parked: boolean;
  compacted: boolean;
  note: boolean;
  restarted: boolean;
}

const round: fc.Arbitrary<Round> = fc.record({
  texts: fc.array(fc.stringMatching(/^[a-z ]{1,6}$/), { maxLength: 4 }),
  retried: fc.boolean(),
  failover: fc.boolean(),
  calls: fc.array(
    fc.record({
      tool: fc.constantFrom("ls", "exec", "message"),
      isError: fc.boolean(),
      approval: fc.constantFrom("none" as const, "none" as const, "yes" as const, "no" as const),
      task: fc.boolean(),
    }),
    { maxLength: 3 },
  ),
  parked: fc.boolean(),
  compacted: fc.boolean(),
  note: fc.boolean(),
  restarted: fc.boolean(),
});

const reasons: ExitReason[] = ["end_turn", "max_turns", "max_budget", "max_tokens", "refusal", "interrupted", "error"];

/** The events of one turn, its exit reason, and the text of its end. */
export interface History {
  events: SessionEvent[];
  exitReason: ExitReason;
  answer: string;
}

const durable = new Set(["message", "turn.finished", "compacted", "approval.requested", "approval.decided"]);

/** One turn with `turnId` t. `cut`: it ends while the calls of its last round have no results. */
export const histories: fc.Arbitrary<History> = fc
  .record({
    rounds: fc.array(round, { minLength: 1, maxLength: 4 }),
    cut: fc.boolean(),
    exitReason: fc.constantFrom(...reasons),
    ownEnd: fc.boolean(),
    losses: fc.infiniteStream(fc.integer({ min: 0, max: 9 })),
    lossy: fc.boolean(),
  })
  .map(({ rounds, cut, exitReason, ownEnd, losses, lossy }) => {
    const told = tell(rounds, cut, exitReason, ownEnd);
    const events = told.events.flatMap((event): SessionEvent[] => {
      const drawn = losses.next();
      const dice = drawn.done === true ? 9 : drawn.value;
      if (!lossy) return [event];
      if (!durable.has(event.type)) return dice < 3 ? [] : [event];
      return dice === 0 ? [event, event] : [event];
    });
    return { ...told, events };
  });

function tell(rounds: readonly Round[], cut: boolean, exitReason: ExitReason, ownEnd: boolean): History {
  const turnId = "t";
  const events: SessionEvent[] = [];
  let seq = 0;
  let step = 0;
  const say = (role: Message["role"], parts: Part[], from?: Message["from"]): void => {
    seq += 1;
    const message: Message = { seq, role, turnId, parts, model: role === "assistant" ? "m" : null, createdAt: "" };
    events.push({ type: "message", seq, message: from === undefined ? message : { ...message, from } });
  };
  events.push({ type: "turn.started", turnId, inboxIds: ["i"], attempt: 1 });
  say("user", [{ type: "text", text: "hello" }], {
    channel: "http",
    account: "default",
    conversation: "c",
    contact: { id: "owner" },
    role: "owner",
    origin: "user",
  });
  let answer = "";
  for (const [at, each] of rounds.entries()) {
    const last = at === rounds.length - 1;
    if (each.compacted) {
      events.push({ type: "compaction.started", turnId, trigger: "share" });
      seq += 1;
      const tokens = { tokensBefore: 100, tokensAfter: 10 };
      events.push({ type: "compacted", seq, turnId, trigger: "share", strategy: "summarize", ...tokens });
    }
    step += 1;
    if (each.failover) events.push({ type: "model.failover", turnId, from: "a", to: "b", reason: "down" });
    const deltas = (attempt: number): void => {
      for (const text of each.texts) events.push({ type: "text.delta", turnId, step, attempt, text });
    };
    if (each.retried) {
      deltas(1);
      events.push({ type: "model.retry", turnId, step, attempt: 2, delayMs: 5, reason: "overloaded" });
    }
    deltas(each.retried ? 2 : 1);
    const text = each.texts.join("");
    const calls = each.calls.map((call, n) => ({ ...call, id: `c${step}.${n}` }));
    say("assistant", [
      ...(text === "" ? [] : [{ type: "text" as const, text }]),
      ...calls.map(({ id, tool }) => ({ type: "tool_call" as const, id, name: tool, input: '{"text":"hi"}' })),
      { type: "finish", reason: calls.length > 0 ? "tool_use" : "end_turn", at: "" },
    ]);
    if (text !== "") answer = text;
    for (const { id, tool, approval, task } of calls) {
      if (approval !== "none") {
        const about = { turnId, approvalId: id, callId: id, tool };
        seq += 1;
        events.push({ type: "approval.requested", seq, ...about, summary: "run it", reason: "risk", expiresAt: "" });
        if (each.parked) events.push({ type: "turn.parked", turnId, waitingFor: [tool] });
        seq += 1;
        events.push({ type: "approval.decided", seq, ...about, allowed: approval === "yes", by: "owner" });
      }
      events.push({ type: "tool.started", turnId, callId: id, tool, input: '{"text":"hi"}' });
      events.push({
        type: "tool.progress",
        turnId,
        callId: id,
        tool,
        progress: { done: 1, total: 2, message: "half" },
      });
      // What a command prints, which the SDK's clients do not receive.
      const printed = { done: 3, total: null, message: "", output: "out" };
      events.push({ type: "tool.progress", turnId, callId: id, tool, progress: printed });
      if (task)
        events.push({ type: "subagent.started", turnId, callId: id, sessionId: `s${id}`, profile: "p", mode: "wait" });
    }
    if (each.restarted) events.push({ type: "turn.started", turnId, inboxIds: ["i"], attempt: 2 });
    if (last && cut) break;
    for (const { id, tool, isError } of calls.toReversed()) {
      events.push({ type: "tool.finished", turnId, callId: id, tool, isError, content: "out", durationMs: 7 });
    }
    if (calls.length > 0) {
      say(
        "tool",
        calls.map(({ id, tool, isError }) => ({ type: "tool_result", id, name: tool, content: "out", isError })),
      );
    }
    // Progress after the result, which must be ignored.
    for (const { id, tool } of calls) {
      events.push({ type: "tool.progress", turnId, callId: id, tool, progress: { done: 2, total: 2, message: "" } });
    }
    if (each.note) say("user", [{ type: "text", text: "[Cut off: go on]" }]);
  }
  const text = ownEnd ? "Stopped." : answer;
  const state = exitReason === "end_turn" ? "done" : exitReason === "interrupted" ? "cancelled" : "failed";
  events.push({ type: "turn.finished", seq: seq + 1, turnId, state, exitReason, text, usage, cost: priced });
  return { events, exitReason, answer: text };
}
