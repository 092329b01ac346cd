// An answer in words from a model that has tools, on the same prefix as every other call of the session; pure.
import type { ModelReply, ModelRequest } from "./provider.ts";

const inWords = "Answer this in plain text. Call no tool.";

/** The request with its wish said at the very end, where it changes nothing that was sent before. */
export function askInWords(request: ModelRequest): ModelRequest {
  if (request.toolChoice !== "none" || request.tools.length === 0) return request;
  const last = request.messages.at(-1);
  if (last?.role !== "user") return request;
  const said = { ...last, parts: [...last.parts, { type: "text" as const, text: inWords }] };
  return { ...request, messages: [...request.messages.slice(0, -1), said] };
}

/** The reply without calls where words were asked for. */
export function keepWords(request: ModelRequest, reply: ModelReply): ModelReply {
  if (request.toolChoice !== "none") return reply;
  const stopReason = reply.stopReason === "tool_use" ? "end_turn" : reply.stopReason;
  return { ...reply, stopReason, parts: reply.parts.filter((part) => part.type !== "tool_call") };
}
