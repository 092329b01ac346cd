// Messages as in a session's log, and tools, for tests of decisions based on them.
import type { Message, Part, Sender, ToolDescriptor } from "@parley/contracts";

export const owner: Sender = {
  channel: "telegram",
  account: "main",
  conversation: "1",
  contact: { id: "1", name: "Alice" },
  role: "owner",
  origin: "user",
};

let seq = 0;

export function message(role: Message["role"], parts: Part[], more: Partial<Message> = {}): Message {
  seq += 1;
  return { seq, role, turnId: "turn", parts, model: null, createdAt: "2026-01-01T00:00:00.000Z", ...more };
}

export function text(value: string): Part {
  return { type: "text", text: value };
}

export function person(value: string, more: Partial<Message> = {}): Message {
  return message("user", [text(value)], { from: owner, ...more });
}

/** A note of the loop. */
export function loopSays(parts: Part[]): Message {
  return message("user", parts);
}

export function answer(value: string): Message {
  return message("assistant", [text(value)]);
}

let calls = 0;

/** A call with its result. */
export function used(name: string, input: object, content: string, isError = false): Message[] {
  calls += 1;
  const id = `used-${calls}`;
  return [
    message("assistant", [{ type: "tool_call", id, name, input: JSON.stringify(input) }]),
    message("tool", [{ type: "tool_result", id, name, content, isError }]),
  ];
}

export function tool(name: string, more: Partial<ToolDescriptor> = {}): ToolDescriptor {
  return {
    name,
    aliases: [],
    summary: `Does ${name}.`,
    description: `What ${name} does, at length.`,
    inputSchema: { type: "object" },
    class: "pure",
    readOnly: true,
    risk: "none",
    effects: [],
    timeoutMs: 1,
    resource: { kind: "none" },
    ...more,
  };
}
