// The trace span of a tool that runs here. Input and output are recorded only when content capture is enabled.
import { capturesContent, failSpan, genAi, genAiOperation, inSpan, parleyAttribute } from "@parley/chassis";
import type { ToolCallRequest } from "@parley/contracts";
import type { ToolOutput } from "../tool/tool.ts";

/** Runs a tool in an `execute_tool <tool>` span, as a child of the caller's span. */
export function inCallSpan<T extends { state: string; output: ToolOutput }>(
  request: ToolCallRequest,
  work: () => Promise<T>,
): Promise<T> {
  const attributes = {
    [genAi.operationName]: genAiOperation.executeTool,
    [genAi.toolName]: request.tool,
    [genAi.toolType]: "function",
    [genAi.toolCallId]: request.callId,
    [genAi.conversationId]: request.sessionId,
    [parleyAttribute.turnId]: request.turnId,
    [parleyAttribute.step]: request.n,
    ...(capturesContent() ? { [genAi.toolCallArguments]: request.input } : {}),
  };
  return inSpan(`${genAiOperation.executeTool} ${request.tool}`, { attributes }, async (span) => {
    const ended = await work();
    span.setAttribute(parleyAttribute.outcome, ended.state);
    if (capturesContent()) span.setAttribute(genAi.toolCallResult, ended.output.content);
    if (ended.output.isError) failSpan(span, ended.state);
    return ended;
  });
}
