// A session as frames for a client that shows every model call as a separate message: stream_start, stream_chunk, stream_end with a
// `msg_id` per call, `response` for a text that was not streamed completely, and events about the agent. A response has the id of the
// stream that it replaces; a response that would repeat its stream is not sent. Pure.
import type { Message, SessionEvent } from "@parley/contracts";
import { textOf } from "@parley/contracts";
import { positionAfter, remainder } from "./answer-text.ts";
import { Position } from "./position.ts";
import { ToolCalls, type ToolCallUpdate } from "./tool-calls.ts";

export type StreamFrame =
  | { type: "stream_start"; msg_id: string }
  | { type: "stream_chunk"; msg_id: string; content: string }
  /** `discarded`: the call failed and is retried under another id. */
  | { type: "stream_end"; msg_id: string; discarded: boolean }
  | { type: "response"; msg_id: string; content: string }
  | {
      type: "event";
      category: "agent" | "subagent" | "heartbeat" | "cron";
      event: string;
      data: Readonly<Record<string, unknown>>;
    };

/** The answers to an approval request. */
const approvalOptions = ["yes", "always", "no"];

/** Characters of a tool result in an event. */
const previewLength = 200;

interface Stream {
  id: string;
  step: number;
  attempt: number;
  text: string;
}

interface Subagent {
  /** Its session. */
  id: string;
  /** Omitted: it was started before this client connected. */
  profile?: string;
}

interface Turn {
  calls: ToolCalls;
  stream: Stream | null;
  /** Calls up to this step are committed. */
  doneStep: number;
  committedTexts: string[];
  responseCount: number;
  /** The jobs whose runs the turn answers. */
  jobs: { id: string; name?: string | undefined }[];
  /** The attempt of the turn: a call that is repeated in a later attempt is another stream. */
  attempt: number;
}

/** Converts all events of one session. */
export class StreamFrames {
  readonly #turns = new Map<string, Turn>();
  readonly #position = new Position();
  /** Running sub-agents, by the call that waits for one, otherwise by their session. */
  readonly #subagents = new Map<string, Subagent>();

  event(event: SessionEvent): StreamFrame[] {
    if (this.#position.isOld(event)) return [];
    if (event.type === "rewound") {
      const { checkpointId: id, paths } = event;
      return [agent("files_rewound", { checkpoint_id: id, paths })];
    }
    const turnId = event.type === "message" ? event.message.turnId : event.turnId;
    const turn = this.#turnOf(turnId);
    const news = turn.calls.event(event).flatMap((update) => [toolFrameOf(update), ...this.#ended(update)]);
    switch (event.type) {
      case "turn.started":
        turn.attempt = event.attempt;
        return [...end(turn, true), agent("thinking_started", { turn_id: turnId, attempt: event.attempt })];
      case "text.delta":
        return chunk(turn, turnId, event);
      case "message":
        return [
          ...(event.message.role === "assistant" ? committed(turn, turnId, event.message) : []),
          ...news,
          ...this.#reported(event.message),
          ...scheduled(turn, event.message),
        ];
      case "question.asked": {
        const { callId, question, options } = event;
        return [agent("question", { question_id: callId, question, options })];
      }
      case "approval.requested": {
        const { approvalId, tool, summary, reason } = event;
        return [
          agent("approval", { question_id: approvalId, tool, question: summary, reason, options: approvalOptions }),
        ];
      }
      case "subagent.started": {
        const { sessionId: id, profile, mode, callId } = event;
        this.#subagents.set(mode === "wait" ? callId : id, { id, profile });
        return [subagent("spawned", { id, profile })];
      }
      case "turn.finished": {
        this.#turns.delete(turnId);
        const rest = turn.committedTexts.some((text) => positionAfter(event.text, text) === event.text.length)
          ? ""
          : remainder(event.text, turn.committedTexts);
        const left: StreamFrame[] =
          rest.trim() === "" ? [] : [{ type: "response", msg_id: `${turnId}-end`, content: rest.trim() }];
        return [
          ...end(turn, true),
          ...left,
          ...turn.jobs.map(({ id, name }): StreamFrame => {
            const data = { id, ...(name === undefined ? {} : { name }), exit_reason: event.exitReason };
            return { type: "event", category: "cron", event: "executed", data };
          }),
          agent("thinking_finished", { turn_id: turnId, exit_reason: event.exitReason }),
        ];
      }
      default:
        return news;
    }
  }

  /** The end of a sub-agent that this call waited for. */
  #ended(update: ToolCallUpdate): StreamFrame[] {
    const ended = update.news === "finished" ? this.#subagents.get(update.id) : undefined;
    if (ended === undefined) return [];
    this.#subagents.delete(update.id);
    return [subagent("completed", ended)];
  }

  /** The end of a background sub-agent, whose report is input of the session. */
  #reported({ from }: Message): StreamFrame[] {
    if (from?.origin !== "subagent") return [];
    const { id } = from.contact;
    const ended = this.#subagents.get(id) ?? { id };
    this.#subagents.delete(id);
    return [subagent("completed", ended)];
  }

  #turnOf(turnId: string): Turn {
    let turn = this.#turns.get(turnId);
    if (turn === undefined) {
      turn = {
        calls: new ToolCalls(),
        stream: null,
        doneStep: -1,
        committedTexts: [],
        responseCount: 0,
        jobs: [],
        attempt: 1,
      };
      this.#turns.set(turnId, turn);
    }
    return turn;
  }
}

function chunk(turn: Turn, turnId: string, delta: { step: number; attempt: number; text: string }): StreamFrame[] {
  const { step, attempt, text } = delta;
  const { stream } = turn;
  if (
    step <= turn.doneStep ||
    (stream !== null && (step < stream.step || (step === stream.step && attempt < stream.attempt)))
  )
    return [];
  const frames: StreamFrame[] = [];
  let current = stream;
  if (current === null || current.step !== step || current.attempt !== attempt) {
    frames.push(...end(turn, true));
    current = { id: `${turnId}-${turn.attempt}-${step}-${attempt}`, step, attempt, text: "" };
    turn.stream = current;
    frames.push({ type: "stream_start", msg_id: current.id });
  }
  current.text += text;
  frames.push({ type: "stream_chunk", msg_id: current.id, content: text });
  return frames;
}

function committed(turn: Turn, turnId: string, message: Message): StreamFrame[] {
  const { stream } = turn;
  const text = textOf(message.parts);
  turn.responseCount += 1;
  if (stream !== null) turn.doneStep = stream.step;
  const frames = end(turn, false);
  if (text === "") return frames;
  turn.committedTexts.push(text);
  // Text blocks of one reply are streamed without separators.
  const streamed = message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const whole = stream !== null && (stream.text === text || stream.text === streamed);
  if (whole) return frames;
  return [...frames, { type: "response", msg_id: stream?.id ?? `${turnId}-call-${turn.responseCount}`, content: text }];
}

function end(turn: Turn, discarded: boolean): StreamFrame[] {
  const { stream } = turn;
  turn.stream = null;
  return stream === null ? [] : [{ type: "stream_end", msg_id: stream.id, discarded }];
}

/** The event of a heartbeat is sent at its begin, that of a job at the end of its turn. */
function scheduled(turn: Turn, { turnId, from }: Message): StreamFrame[] {
  if (from?.origin === "cron") turn.jobs.push(from.contact);
  if (from?.origin !== "heartbeat") return [];
  return [{ type: "event", category: "heartbeat", event: "tick", data: { turn_id: turnId } }];
}

function subagent(event: "spawned" | "completed", { id, profile }: Subagent): StreamFrame {
  const data = { id, ...(profile === undefined ? {} : { profile }) };
  return { type: "event", category: "subagent", event, data };
}

function agent(event: string, data: Readonly<Record<string, unknown>>): StreamFrame {
  return { type: "event", category: "agent", event, data };
}

function toolFrameOf(news: ToolCallUpdate): StreamFrame {
  const call = { tool_use_id: news.id, tool: news.tool };
  if (news.news === "started") return agent("tool_call", { ...call, input: news.input });
  const preview = news.content.slice(0, previewLength);
  return agent("tool_result", { ...call, preview, is_error: news.isError, duration_ms: news.durationMs });
}
