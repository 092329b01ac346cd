// Calls that reach a tool by way of `tool_call`: taken apart where a model's reply comes in, so that everything behind it (steps,
// permissions, hooks, events, the log's readers) knows the tool that is meant alone; put together again in what a model is sent. Pure.
import type { Part, ToolCall } from "@parley/contracts";
import { z } from "zod";

export const callToolName = "tool_call";

/** What a tool may be called: nothing else gets as far as being looked for. */
const ToolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);
const JsonObject = z.record(z.string(), z.unknown());

/** `input`: the arguments, or their JSON text. Left out: whatever stands beside `tool`. */
const Wrapper = z.looseObject({
  tool: ToolName,
  input: z.union([JsonObject, z.string().transform(parsed).pipe(JsonObject)]).optional(),
});

/** `isWrapper` knows `tool_call` by each of its names. A wrapper without a call in it stays a call of its own, which says what is wrong. */
export function unwrapCalls(parts: readonly Part[], isWrapper: (name: string) => boolean): Part[] {
  return parts.map((part) => {
    if (part.type !== "tool_call") return part;
    const inner = innermost(part, isWrapper);
    return inner.name === part.name && inner.input === part.input
      ? part
      : { ...part, ...inner, wrote: { name: part.name, input: part.input } };
  });
}

function innermost({ name, input }: Pick<ToolCall, "name" | "input">, isWrapper: (name: string) => boolean) {
  const call = { name, input };
  while (isWrapper(call.name)) {
    const wrapper = Wrapper.safeParse(parsed(call.input));
    if (!wrapper.success) break;
    const { tool, input: inner, ...beside } = wrapper.data;
    call.name = tool;
    call.input = JSON.stringify(inner ?? beside);
  }
  return call;
}

const written = new WeakMap<ToolCall, ToolCall>();

/** The part as the model wrote it; the same object for the same part. */
export function asWritten(part: Part): Part {
  if (part.type !== "tool_call" || part.wrote === undefined) return part;
  let original = written.get(part);
  if (original === undefined) {
    original = { type: "tool_call", id: part.id, ...part.wrote };
    written.set(part, original);
  }
  return original;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
