// The calls of a session that were refused without being run. Pure.
import { ownToolName, type Part, type SessionEvent } from "@parley/contracts";

/** How the refusal of an unknown tool begins, which is no denial. Must match agent-core's toolbox. */
const unknownToolText = "Tool not found: ";

type ToolResult = Extract<Part, { type: "tool_result" }>;

/** Whether the result is that of a call that a rule, the mode, a hook, a person or an approval timeout denied. */
export function isDenial(part: ToolResult): boolean {
  return part.refused === true && !part.content.startsWith(unknownToolText);
}

export interface Denial {
  /** Parley's name of the tool. */
  readonly tool: string;
  /** What the model receives. */
  readonly reason: string;
}

/** Reports each denied call once. The live event comes first but can be lost; the stored result comes in any case. */
export class Denials {
  readonly #reported = new Set<string>();

  /** The denied calls of an event that were not reported before. */
  event(event: SessionEvent): readonly Denial[] {
    if (event.type === "tool.denied") return this.#new(event.turnId, event.callId, event.tool, event.reason);
    if (event.type !== "message") return [];
    return event.message.parts.flatMap((part) =>
      part.type === "tool_result" && isDenial(part)
        ? this.#new(event.message.turnId, part.id, part.name, part.content)
        : [],
    );
  }

  #new(turnId: string, callId: string, tool: string, reason: string): readonly Denial[] {
    const key = `${turnId}/${callId}`;
    if (this.#reported.has(key)) return [];
    this.#reported.add(key);
    return [{ tool: ownToolName(tool), reason }];
  }
}
