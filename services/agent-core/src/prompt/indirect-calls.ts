// Calls made through `tool_call`. A model's reply is unwrapped on arrival, so that steps, permissions, hooks, events
// and log readers see the actual tool only; requests to the model contain the call as it was written. Pure.
import { parseJson } from "@parley/kit";
import type { Part, ToolCall } from "@parley/contracts";
import { z } from "zod";

export const callToolName = "tool_call";

/** Valid tool names: other names are not looked up. */
const ToolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);
const JsonObject = z.record(z.string(), z.unknown());

/** `input`: the arguments, or their JSON text. Omitted: all other fields next to `tool`. */
const Wrapper = z.looseObject({
  tool: ToolName,
  input: z.union([JsonObject, z.string().transform(parseJson).pipe(JsonObject)]).optional(),
});

/**
 * `isWrapper` must return true for `tool_call` and all its aliases. A wrapper without a valid call is kept, so that its result reports
 * the error.
 */
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
    const wrapper = Wrapper.safeParse(parseJson(call.input));
    if (!wrapper.success) break;
    const { tool, input: inner, ...others } = wrapper.data;
    call.name = tool;
    call.input = JSON.stringify(inner ?? others);
  }
  return call;
}

const written = new WeakMap<ToolCall, ToolCall>();

/** The part as the model wrote it. The same part object always returns the same object. */
export function originalCall(part: Part): Part {
  if (part.type !== "tool_call" || part.wrote === undefined) return part;
  let original = written.get(part);
  if (original === undefined) {
    original = { type: "tool_call", id: part.id, ...part.wrote };
    written.set(part, original);
  }
  return original;
}
