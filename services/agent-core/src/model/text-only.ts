// Text-only answers from a model with tools, with the same prefix as all other calls of the session; pure.
import type { ModelReply, ModelRequest } from "./provider.ts";

const inWords = "Answer this in plain text. Call no tool.";

/** The request with the instruction at its very end, so that nothing sent before changes. */
export function toTextOnlyRequest(request: ModelRequest): ModelRequest {
  if (request.toolChoice !== "none" || request.tools.length === 0) return request;
  const last = request.messages.at(-1);
  if (last?.role !== "user") return request;
  const said = { ...last, parts: [...last.parts, { type: "text" as const, text: inWords }] };
  return { ...request, messages: [...request.messages.slice(0, -1), said] };
}

/** The reply without calls if a text answer was requested. */
export function dropToolCalls(request: ModelRequest, reply: ModelReply): ModelReply {
  if (request.toolChoice !== "none") return reply;
  const stopReason = reply.stopReason === "tool_use" ? "end_turn" : reply.stopReason;
  return { ...reply, stopReason, parts: reply.parts.filter((part) => part.type !== "tool_call") };
}
