// The state of one turn in the SDK-style stream: open calls, model calls, models, denials. Pure.
import { ownToolName, type Message, type Part, type SessionEvent, type ToolProgress } from "@parley/contracts";
import { isDenial } from "./denials.ts";
import { PartialMessages } from "./sdk-partial.ts";
import { jsonOr, stopOf } from "./sdk-blocks.ts";
import { taskEnd } from "./sdk-system.ts";
import type { PermissionDenial, SdkBody, ToolResultBlock } from "./sdk-types.ts";

type ProgressBody = Extract<SdkBody, { type: "tool_progress" }>;

interface Call {
  tool: string;
  input: string;
  /** Milliseconds since 1970; null: not started, or its end was reported. */
  startedAt: number | null;
  answered: boolean;
}

/** The content of a missing result, because every call must have one. */
const noResult = "The turn ended before this call returned a result.";

type CallEvent = Extract<SessionEvent, { type: "tool.started" | "tool.finished" }>;

export class SdkTurn {
  readonly partial = new PartialMessages();
  /** When its first event was received, in milliseconds since 1970. */
  readonly begunAt: number;
  readonly denials: PermissionDenial[] = [];
  readonly models = new Set<string>();
  /** Sessions of awaited sub-agents, by tool call. */
  readonly tasks = new Map<string, string>();
  /** The number of stream messages of this turn. */
  messageCount = 0;
  modelCalls = 0;
  compacting = false;
  waiting = false;
  /** The stop reason of the last model call. */
  stopReason: string | null = null;
  /** Time in which calls were open, in milliseconds. */
  toolMs = 0;
  /** Deltas of the next reply that arrived before the results of open calls. */
  held: { event: SessionEvent; atMs: number }[] = [];
  /** Starts and ends of calls whose message has not arrived: live events overtake durable ones. */
  #early: { event: CallEvent; atMs: number }[] = [];
  #openSince: number | null = null;
  readonly #calls = new Map<string, Call>();

  constructor(begunAt: number) {
    this.begunAt = begunAt;
  }

  modelReply(message: Message, atMs: number): void {
    this.modelCalls += 1;
    this.stopReason = stopOf(message).stop_reason;
    if (message.model !== null) this.models.add(message.model);
    for (const part of message.parts) {
      if (part.type !== "tool_call") continue;
      const tool = ownToolName(part.name);
      this.#calls.set(part.id, { tool, input: part.input, startedAt: null, answered: false });
    }
    if (this.open) this.#openSince ??= atMs;
  }

  /** Whether any tool call has no result yet. */
  get open(): boolean {
    return [...this.#calls.values()].some(({ answered }) => !answered);
  }

  hasCall(callId: string): boolean {
    return this.#calls.has(callId);
  }

  /** Keeps an event until the message with its call has arrived. */
  keepEarly(event: CallEvent, atMs: number): [] {
    this.#early.push({ event, atMs });
    return [];
  }

  /** Removes and returns the kept events of calls that have arrived since. */
  takeEarly(): { event: CallEvent; atMs: number }[] {
    const early = this.#early;
    this.#early = early.filter(({ event }) => !this.hasCall(event.callId));
    return early.filter(({ event }) => this.hasCall(event.callId));
  }

  started(callId: string, atMs: number): SdkBody[] {
    const call = this.#calls.get(callId);
    if (call === undefined || call.answered || call.startedAt !== null) return [];
    call.startedAt = atMs;
    return [progress(callId, call.tool, "start", 0)];
  }

  /** Reports the progress of a call, as sent by its tool. */
  moved(callId: string, atMs: number, { done, total, message }: ToolProgress): SdkBody[] {
    const call = this.#calls.get(callId);
    if (call?.startedAt === null || call?.startedAt === undefined) return [];
    const seconds = Math.max(0, atMs - call.startedAt) / 1_000;
    return [{ ...progress(callId, call.tool, "progress", seconds), progress: { done, total, message } }];
  }

  /** `tookMs` null: computed from the event times. */
  finished(callId: string, atMs: number, tookMs: number | null): SdkBody[] {
    const call = this.#calls.get(callId);
    if (call?.startedAt === null || call?.startedAt === undefined) return [];
    const took = tookMs ?? Math.max(0, atMs - call.startedAt);
    call.startedAt = null;
    return [progress(callId, call.tool, "end", took / 1_000)];
  }

  /** Converts the results of a message; results of unknown calls are omitted. */
  answered(parts: readonly Part[], atMs: number): SdkBody[] {
    const ends: SdkBody[] = [];
    const blocks: ToolResultBlock[] = [];
    const after: SdkBody[] = [];
    for (const part of parts) {
      if (part.type !== "tool_result") continue;
      const call = this.#calls.get(part.id);
      if (call === undefined || call.answered) continue;
      ends.push(...this.finished(part.id, atMs, null));
      call.answered = true;
      blocks.push({ type: "tool_result", tool_use_id: part.id, content: part.content, is_error: part.isError });
      // The live event of the denial may have been lost, or have arrived before the call.
      if (isDenial(part)) ends.push(...this.refused(part.id, part.content));
      const task = this.tasks.get(part.id);
      this.tasks.delete(part.id);
      if (task === undefined) continue;
      const status = part.isError ? "failed" : "completed";
      after.push(taskEnd(task, part.id, status, part.content));
    }
    if (blocks.length === 0) return [];
    if (!this.open && this.#openSince !== null) {
      this.toolMs += Math.max(0, atMs - this.#openSince);
      this.#openSince = null;
    }
    return [...ends, { type: "user", parent_tool_use_id: null, message: { role: "user", content: blocks } }, ...after];
  }

  /** Returns error results for calls without a result at the end of the turn. */
  abandoned(atMs: number): SdkBody[] {
    const left = [...this.#calls].filter(([, { answered }]) => !answered);
    return this.answered(
      left.map(([id, { tool }]) => ({ type: "tool_result", id, name: tool, content: noResult, isError: true })),
      atMs,
    );
  }

  /** Reports that a call was refused without a person's decision, once. Nothing while the call is unknown: its result reports it. */
  refused(callId: string, message: string): SdkBody[] {
    const call = this.#calls.get(callId);
    if (call === undefined || !this.denied(callId, call.tool)) return [];
    const about = { tool_name: call.tool, tool_use_id: callId, message };
    return [{ type: "system", subtype: "permission_denied", ...about }];
  }

  /** Records a denial once, although it is reported twice: when a person decides, and when the call is refused. False: it is recorded. */
  denied(callId: string, tool: string): boolean {
    if (this.denials.some(({ tool_use_id }) => tool_use_id === callId)) return false;
    const input = this.#calls.get(callId)?.input;
    const tool_input = input === undefined ? null : jsonOr(input);
    this.denials.push({ tool_name: ownToolName(tool), tool_use_id: callId, tool_input });
    return true;
  }
}

function progress(callId: string, tool: string, status: ProgressBody["status"], seconds: number): ProgressBody {
  return {
    type: "tool_progress",
    parent_tool_use_id: null,
    tool_use_id: callId,
    tool_name: tool,
    status,
    elapsed_time_seconds: seconds,
  };
}
