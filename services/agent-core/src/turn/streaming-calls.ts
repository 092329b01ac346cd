// What the running model calls of this leader have written so far, by session. Clients that join in the middle of an answer ask for
// it, because live events are not repeated.
import type { OutputOf, controlStreaming } from "@parley/contracts";
import type { ModelDelta } from "../model/provider.ts";

export type StreamingCall = NonNullable<OutputOf<typeof controlStreaming>["call"]>;

export class StreamingCalls {
  readonly #calls = new Map<string, StreamingCall>();

  /** Begins an attempt of a model call; what the previous attempt wrote is dropped. */
  begin(sessionId: string, at: Pick<StreamingCall, "turnId" | "step" | "attempt">): void {
    this.#calls.set(sessionId, { ...at, text: "", reasoning: "", tools: [] });
  }

  /** Adds a part; returns the number of characters (UTF-16) of the same text before it. */
  add(sessionId: string, delta: ModelDelta): number {
    const call = this.#calls.get(sessionId);
    if (call === undefined) return 0;
    if (delta.type === "tool_input") {
      const known = call.tools.find(({ callId }) => callId === delta.id);
      if (known === undefined) call.tools.push({ callId: delta.id, tool: delta.name, input: delta.text });
      else known.input += delta.text;
      return (known?.input.length ?? delta.text.length) - delta.text.length;
    }
    const offset = call[delta.type].length;
    call[delta.type] += delta.text;
    return offset;
  }

  /** The call is committed or has failed. */
  end(sessionId: string): void {
    this.#calls.delete(sessionId);
  }

  /** Null: no model call of the session is writing. */
  get(sessionId: string): StreamingCall | null {
    return this.#calls.get(sessionId) ?? null;
  }
}
