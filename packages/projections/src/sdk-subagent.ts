// The messages of a sub-agent inside the stream of the run that started it: replies and tool results, with the call that started it
// in `parent_tool_use_id`, and denials, with its session in `agent_id`. Pure.
import { textOf, type SessionEvent } from "@parley/contracts";
import { SdkMessages } from "./sdk-messages.ts";
import type { SdkInit, SdkMessage } from "./sdk-types.ts";

export interface SubagentOptions {
  /** The session of the sub-agent. */
  sessionId: string;
  /** The tool call that started the sub-agent. */
  toolUseId: string;
  /** Also include the task, texts and thinking; otherwise only tool calls and their results. */
  texts: boolean;
}

/** The stream of one task of a sub-agent. */
export class SdkSubagentMessages {
  readonly #messages: SdkMessages;
  readonly #run: string;
  readonly #options: SubagentOptions;

  /** `run`: the agent's data in the stream of the run. `messages`: that stream, whose results include the models of the sub-agent. */
  constructor(run: SdkInit, options: SubagentOptions, messages: SdkMessages) {
    this.#run = run.sessionId;
    this.#options = options;
    this.#messages = new SdkMessages({ ...run, sessionId: options.sessionId }, { partial: false }, messages.totals);
  }

  /** Returns the messages for an event of the sub-agent's session. */
  event(event: SessionEvent, atMs: number): SdkMessage[] {
    const { sessionId: agent_id, toolUseId, texts } = this.#options;
    const about = { session_id: this.#run, parent_tool_use_id: toolUseId };
    return this.#messages.event(event, atMs).flatMap((message): SdkMessage[] => {
      if (message.type === "user") return message.isSynthetic === true && !texts ? [] : [{ ...message, ...about }];
      if (message.type === "assistant") {
        const content = message.message.content.filter(({ type }) => texts || type === "tool_use");
        return content.length === 0 ? [] : [{ ...message, ...about, message: { ...message.message, content } }];
      }
      if (message.type === "system" && message.subtype === "permission_denied")
        return [{ ...message, session_id: this.#run, agent_id }];
      const task = texts ? taskIn(event) : "";
      if (message.type !== "system" || message.subtype !== "task_notification" || task === "") return [];
      const content = [{ type: "text", text: task }] as const;
      return [{ type: "user", message: { role: "user", content }, uuid: message.uuid, ...about }];
    });
  }
}

/** The text of the message that gives a sub-agent its task; empty: the event is another one. */
function taskIn(event: SessionEvent): string {
  const isTask = event.type === "message" && event.message.from?.origin === "subagent";
  return isTask ? textOf(event.message.parts) : "";
}
