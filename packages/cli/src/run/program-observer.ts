// Hooks of the program that observe what has happened: tool results, denials, sub-agents, compactions and notifications. The only
// output that changes something is `continue: false`, which ends the turn.

import { errorMessage, type SessionEvent } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { SdkMessage } from "@parley/projections";

import type { HookEvent } from "./hook-events.ts";
import type { ProgramHooks } from "./hooks.ts";
import type { Subagent } from "./subagents.ts";

export interface ProgramObserverDeps {
  readonly hooks: ProgramHooks;
  readonly hookContext: () => Readonly<Record<string, unknown>>;
  readonly note: (text: string) => void;
  /** Ends the running turn. */
  readonly stop: () => void;
  /** The run waits for this work before it ends. */
  readonly start: (work: Promise<void>) => void;
}

interface Call {
  readonly tool: string;
  readonly input: unknown;
}

/** The calls of the run itself, or of one sub-agent. */
interface Scope {
  /** Fields of a hook's input that name the sub-agent; empty for the run itself. */
  readonly about: Readonly<{ agent_id?: string; agent_type?: string }>;
  /** Those without a result, by id. */
  readonly calls: Map<string, Call>;
  /** The ended calls of the newest reply. */
  batch: BatchCall[];
}

interface BatchCall {
  readonly tool_name: string;
  readonly tool_input: unknown;
  readonly tool_use_id: string;
  readonly tool_response?: unknown;
}

export class ProgramObserver {
  readonly #deps: ProgramObserverDeps;
  /** By the session of the sub-agent; undefined: the run itself. */
  readonly #scopes = new Map<string | undefined, Scope>();

  constructor(deps: ProgramObserverDeps) {
    this.#deps = deps;
  }

  /** Handles a message of the stream. `subagent`: the sub-agent that it is of; omitted: the run itself. */
  message(message: SdkMessage, subagent?: Pick<Subagent, "sessionId" | "profile">): void {
    const scope = this.#scopeOf(subagent);
    if (message.type === "system") {
      if (message.subtype === "permission_denied") this.#denied(scope, message);
      if (message.subtype === "user_question") this.notification("user_question", message.question);
      if (message.subtype === "notice") this.notification("notice", message.text);
    }
    if (message.type === "assistant") {
      for (const block of message.message.content) {
        if (block.type === "tool_use") scope.calls.set(block.id, { tool: block.name, input: block.input });
      }
    }
    if (message.type === "user") {
      for (const block of message.message.content) {
        if (block.type === "tool_result") this.#ended(scope, block.tool_use_id, block.content, block.is_error);
      }
    }
    if (message.type === "result") scope.calls.clear();
  }

  /** Handles an event of the run or of a sub-agent. */
  event(event: SessionEvent): void {
    if (event.type === "subagent.started") {
      const { sessionId: agent_id, profile: agent_type } = event;
      this.#call("SubagentStart", { agent_id, agent_type }, agent_type);
    }
    // A compaction that somebody requests is reported before its request is sent.
    if (event.type === "compaction.started" && event.trigger !== "demand")
      this.#call("PreCompact", { trigger: "auto", custom_instructions: null }, "auto");
    if (event.type === "compacted") {
      const trigger = event.trigger === "demand" ? "manual" : "auto";
      this.#call("PostCompact", { trigger, compact_summary: event.summary ?? "" }, trigger);
    }
  }

  subagentEnded({ sessionId, profile }: { sessionId: string; profile: string }, text: string): void {
    const about = { agent_id: sessionId, agent_type: profile, agent_transcript_path: "" };
    this.#call("SubagentStop", { ...about, stop_hook_active: false, last_assistant_message: text }, profile);
  }

  notification(type: string, text: string): void {
    this.#call("Notification", { message: text, notification_type: type }, type);
  }

  #scopeOf(subagent: Pick<Subagent, "sessionId" | "profile"> | undefined): Scope {
    const known = this.#scopes.get(subagent?.sessionId);
    if (known !== undefined) return known;
    const about = subagent === undefined ? {} : { agent_id: subagent.sessionId, agent_type: subagent.profile };
    const scope: Scope = { about, calls: new Map(), batch: [] };
    this.#scopes.set(subagent?.sessionId, scope);
    return scope;
  }

  #denied(scope: Scope, denied: Extract<SdkMessage, { subtype: "permission_denied" }>): void {
    const { tool_name, tool_use_id, message: reason } = denied;
    const tool_input = scope.calls.get(tool_use_id)?.input ?? {};
    const input = { ...scope.about, tool_name, tool_input, tool_use_id, reason };
    this.#call("PermissionDenied", input, tool_name, tool_use_id);
  }

  #ended(scope: Scope, callId: string, content: string, isError: boolean): void {
    const call = scope.calls.get(callId);
    if (call === undefined) return;
    scope.calls.delete(callId);
    const about = { tool_name: call.tool, tool_input: call.input, tool_use_id: callId };
    const event = isError ? "PostToolUseFailure" : "PostToolUse";
    const outcome = isError ? { error: content, is_interrupt: false } : { tool_response: content };
    this.#call(event, { ...scope.about, ...about, ...outcome }, call.tool, callId);
    scope.batch.push({ ...about, tool_response: content });
    if (scope.calls.size > 0) return;
    this.#call("PostToolBatch", { ...scope.about, tool_calls: scope.batch });
    scope.batch = [];
  }

  #call(event: HookEvent, input: object, subject?: string, callId?: string): void {
    if (this.#deps.hooks.has(event, subject)) this.#deps.start(this.#observe(event, input, subject, callId));
  }

  /** Never rejects. */
  async #observe(event: HookEvent, input: object, subject?: string, callId?: string): Promise<void> {
    const { hooks, hookContext, note, stop } = this.#deps;
    const name = subject === undefined ? event : `${event} of ${subject}`;
    try {
      const verdict = await hooks.call(event, { ...hookContext(), ...omitUndefined(input) }, subject, callId);
      if (verdict.stop !== null) stop();
      else if (verdict.decision === "deny") note(`${name}: the hook's decision has no effect: it observes only`);
    } catch (error) {
      note(`${name}: the hook failed: ${errorMessage(error)}`);
    }
  }
}
