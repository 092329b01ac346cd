// The tool calls of one turn. Each start and each end is reported once, by the first event that contains it: live events may be lost,
// and durable messages arrive later. Pure.
import type { SessionEvent } from "@parley/contracts";

export type ToolCallUpdate =
  | { news: "started"; id: string; tool: string; input: string }
  | {
      news: "finished";
      id: string;
      tool: string;
      input: string;
      content: string;
      isError: boolean;
      durationMs: number | null;
    };

interface Known {
  input: string;
  state: "started" | "finished";
}

export class ToolCalls {
  readonly #calls = new Map<string, Known>();

  event(event: SessionEvent): ToolCallUpdate[] {
    switch (event.type) {
      case "tool.started":
        return this.#started(event.callId, event.tool, event.input);
      case "tool.finished": {
        const { callId, tool, content, isError, durationMs } = event;
        return this.#finished(callId, tool, { content, isError, durationMs });
      }
      case "message":
        return event.message.parts.flatMap((part) => {
          if (part.type === "tool_call") return this.#started(part.id, part.name, part.input);
          if (part.type !== "tool_result") return [];
          return this.#finished(part.id, part.name, { content: part.content, isError: part.isError, durationMs: null });
        });
      default:
        return [];
    }
  }

  #started(id: string, tool: string, input: string): ToolCallUpdate[] {
    if (this.#calls.has(id)) return [];
    this.#calls.set(id, { input, state: "started" });
    return [{ news: "started", id, tool, input }];
  }

  #finished(
    id: string,
    tool: string,
    end: { content: string; isError: boolean; durationMs: number | null },
  ): ToolCallUpdate[] {
    const known = this.#calls.get(id);
    if (known?.state === "finished") return [];
    const input = known?.input ?? "";
    this.#calls.set(id, { input, state: "finished" });
    const begun: ToolCallUpdate[] = known === undefined ? [{ news: "started", id, tool, input }] : [];
    return [...begun, { news: "finished", id, tool, input, ...end }];
  }
}
