// Folds session events into the state of the chat. Pure. Durable events decide: each counts once, by its seq, and replaces what the
// live events before it have shown. Live events may be lost or repeated.
import type { DurableEvent, LiveEvent, Message, SessionEvent } from "@parley/contracts";
import { emptyChat, type ChatState, type Item, type RunningTurn, type ToolView } from "./state.ts";
import { blocksOf, filesOf, textOfParts } from "./parts.ts";
import { addDelta } from "./stream.ts";

/** The state after an event that arrived at `nowMs` (milliseconds since 1970). */
export function reduce(state: ChatState, event: SessionEvent, nowMs: number): ChatState {
  if ("seq" in event) return event.seq <= state.seq ? state : durable({ ...state, seq: event.seq }, event);
  return liveEvent(state, event, nowMs);
}

/** The state with earlier messages, which were read for scrolling back, in front. */
export function prepend(state: ChatState, messages: readonly Message[]): ChatState {
  const first = state.items[0]?.seq ?? Number.POSITIVE_INFINITY;
  const older = messages.filter(({ seq }) => seq < first);
  let earlier: ChatState = { ...emptyChat };
  for (const message of older) earlier = addMessage(earlier, message);
  const tools = new Map(earlier.tools);
  for (const [callId, view] of state.tools) {
    // The arguments of a call stand in its earlier message.
    const known = earlier.tools.get(callId);
    tools.set(callId, known === undefined ? view : { ...view, tool: known.tool, input: known.input });
  }
  // The turn that runs now is not affected by its earlier messages.
  return { ...state, items: [...earlier.items, ...state.items], tools };
}

function durable(state: ChatState, event: DurableEvent): ChatState {
  switch (event.type) {
    case "message":
      return closeStep(addMessage(state, event.message), event.message);
    case "turn.finished": {
      const { seq, turnId, exitReason, text, usage, cost } = event;
      const item: Item = {
        kind: "end",
        seq,
        turnId,
        exitReason,
        text: isSaid(state, turnId, text) ? "" : text,
        usage,
        cost,
      };
      const ended = state.turn?.turnId === turnId ? { turn: null, live: null, closed: null } : {};
      return { ...state, ...ended, items: [...state.items, item], questions: new Map() };
    }
    case "compacted": {
      const { seq, tokensBefore, tokensAfter, strategy } = event;
      const item: Item = { kind: "compacted", seq, tokensBefore, tokensAfter, strategy };
      return { ...state, items: [...state.items, item] };
    }
    case "rewound":
      return state;
    case "approval.requested": {
      const { approvalId, callId, tool, summary, reason, expiresAt, mayAlways = true } = event;
      const approvals = new Map(state.approvals).set(callId, {
        approvalId,
        callId,
        tool,
        summary,
        reason,
        mayAlways,
        expiresAt,
        decision: null,
      });
      return { ...state, approvals };
    }
    case "approval.decided": {
      const approval = state.approvals.get(event.callId);
      if (approval === undefined) return state;
      const decision = { allowed: event.allowed, by: event.by };
      return { ...state, approvals: new Map(state.approvals).set(event.callId, { ...approval, decision }) };
    }
    case "question.asked": {
      const { callId, question, options, expiresAt } = event;
      return { ...state, questions: new Map(state.questions).set(callId, { callId, question, options, expiresAt }) };
    }
  }
}

/** Whether a message of the turn already shows the text. */
function isSaid({ items }: ChatState, turnId: string, text: string): boolean {
  const answers = items
    .filter((item) => item.kind === "assistant" && item.turnId === turnId)
    .map((item) => (item.kind === "assistant" ? textOfParts(item.blocks) : ""));
  const trimmed = text.trim();
  return trimmed === "" || answers.some((each) => each.includes(trimmed));
}

function addMessage(state: ChatState, message: Message): ChatState {
  const { seq, turnId, parts, createdAt: at } = message;
  switch (message.role) {
    case "user": {
      const { from } = message;
      const item: Item = {
        kind: "user",
        seq,
        turnId,
        text: textOfParts(parts),
        files: filesOf(parts),
        tainted: message.tainted === true,
        at,
        ...(from === undefined ? {} : { from }),
      };
      return { ...state, items: [...state.items, item] };
    }
    case "assistant": {
      const tools = new Map(state.tools);
      for (const part of parts) {
        if (part.type === "tool_call")
          tools.set(part.id, toolOf(tools, part.id, { tool: part.name, input: part.input }));
      }
      const item: Item = { kind: "assistant", seq, turnId, blocks: blocksOf(parts), model: message.model, at };
      return { ...state, tools, items: [...state.items, item] };
    }
    case "tool": {
      const tools = new Map(state.tools);
      const questions = new Map(state.questions);
      for (const part of parts) {
        if (part.type !== "tool_result") continue;
        const { id, name, content, isError } = part;
        const ended = part.refused === true ? "denied" : isError ? "failed" : "done";
        const before = tools.get(id);
        const files = [...(part.attachments ?? []), ...(part.sent ?? []), ...(part.kept ?? [])];
        tools.set(
          id,
          toolOf(tools, id, {
            tool: name,
            state: before?.state === "denied" ? "denied" : ended,
            output: content,
            isolation: part.isolation ?? before?.isolation ?? null,
            durationMs: before?.durationMs ?? part.durationMs ?? null,
            progress: null,
            files,
          }),
        );
        questions.delete(id);
      }
      return { ...state, tools, questions };
    }
  }
}

function toolOf(tools: ReadonlyMap<string, ToolView>, callId: string, change: Partial<ToolView>): ToolView {
  const known = tools.get(callId) ?? {
    callId,
    tool: "",
    input: "",
    state: "requested" as const,
    output: null,
    startedAtMs: null,
    durationMs: null,
    isolation: null,
    progress: null,
    subagent: null,
    files: [],
  };
  return { ...known, ...change };
}

/** A committed assistant message replaces the streamed text of its step. */
function closeStep(state: ChatState, { role, turnId }: Message): ChatState {
  if (role !== "assistant" || state.live?.turnId !== turnId) return state;
  return { ...state, live: null, closed: { turnId, step: state.live.step } };
}

function liveEvent(state: ChatState, event: LiveEvent, nowMs: number): ChatState {
  if (isEnded(state, event.turnId)) return state;
  const turn = turnOf(state, event.turnId, nowMs);
  switch (event.type) {
    case "turn.started":
      // A turn that is claimed again repeats its model call.
      return { ...state, turn, live: null };
    case "text.delta":
    case "reasoning.delta":
    case "tool.input":
      return addDelta({ ...state, turn: { ...turn, activity: null } }, event);
    case "model.retry":
      return {
        ...state,
        // The next attempt streams from its beginning.
        live: state.live?.turnId === event.turnId && state.live.step === event.step ? null : state.live,
        turn: { ...turn, activity: `The model call failed (${event.reason}); trying again` },
      };
    case "model.failover":
      return { ...state, turn: { ...turn, notices: [...turn.notices, `${event.to} continues: ${event.reason}`] } };
    case "turn.parked":
      return { ...state, turn: { ...turn, activity: "Waiting" } };
    case "compaction.started":
      return { ...state, turn: { ...turn, activity: "Compacting the conversation" } };
    case "notice":
      return { ...state, turn: { ...turn, notices: [...turn.notices, event.text] } };
    case "subagent.started":
      return withTool(state, turn, event.callId, { subagent: event.sessionId, state: "running" });
    case "tool.started": {
      const known = state.tools.get(event.callId);
      if (known?.output !== undefined && known.output !== null) return { ...state, turn };
      // The committed message has the whole arguments.
      const input = known === undefined || known.input === "" ? event.input : known.input;
      return withTool(state, turn, event.callId, { tool: event.tool, input, state: "running", startedAtMs: nowMs });
    }
    case "tool.progress":
      return withTool(state, turn, event.callId, { tool: event.tool, progress: event.progress });
    case "tool.denied":
      return withTool(state, turn, event.callId, { tool: event.tool, state: "denied", output: event.reason });
    case "tool.finished": {
      const { callId, tool, isError, content, durationMs, isolation = null } = event;
      const ended = isError ? "failed" : "done";
      const output = state.tools.get(callId)?.output ?? content;
      return withTool(state, turn, callId, { tool, state: ended, output, durationMs, isolation, progress: null });
    }
  }
}

function withTool(state: ChatState, turn: RunningTurn, callId: string, change: Partial<ToolView>): ChatState {
  const tools = new Map(state.tools).set(callId, toolOf(state.tools, callId, change));
  return { ...state, tools, turn: { ...turn, activity: null } };
}

function turnOf({ turn }: ChatState, turnId: string, nowMs: number): RunningTurn {
  return turn?.turnId === turnId ? turn : { turnId, startedAtMs: nowMs, activity: null, notices: [] };
}

function isEnded({ items }: ChatState, turnId: string): boolean {
  for (let index = items.length - 1; index >= 0 && index >= items.length - 50; index--) {
    const item = items[index];
    if (item?.kind === "end" && item.turnId === turnId) return true;
  }
  return false;
}
