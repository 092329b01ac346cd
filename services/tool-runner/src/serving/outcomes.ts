// How a call can end, and what the model is told of it; pure.
import { randomUUID } from "node:crypto";
import { fitContent } from "@parley/bus";
import {
  callToken,
  isUnderWarning,
  untrustedMark,
  WireError,
  type OutputOf,
  type toolCall,
  type ToolCallRequest,
  type ToolResult,
  type ToolStep,
} from "@parley/contracts";
import type { ToolOutput } from "../tool.ts";

export type CallAnswer = OutputOf<typeof toolCall>;

/** Why a running call is told to end. */
export type Stop = "cancelled" | "deadline" | "drain";

/** What came of a call, before the store has it. */
export interface Outcome {
  state: CallAnswer["state"];
  output: ToolOutput;
  /** Under which it is settled, however often that is tried. */
  opId: string;
}

export function outcome(state: Outcome["state"], output: ToolOutput): Outcome {
  return { state, output, opId: randomUUID() };
}

export function cancelled(): Outcome {
  return outcome("cancelled", { content: "Cancelled", isError: true });
}

/** A call that was told to end, with what the tool said last. */
export function stopped(request: ToolCallRequest, stop: Stop | undefined, output: ToolOutput | undefined): Outcome {
  const seconds = Math.round(request.timeoutMs / 1_000);
  const said = output === undefined || output.content === "" ? "" : `\n${output.content}`;
  if (stop === "cancelled") return cancelled();
  const flags = { isError: true, ...(output?.untrusted === undefined ? {} : { untrusted: output.untrusted }) };
  if (stop === "drain") {
    return outcome("cancelled", { content: `Interrupted: the tool-runner was shut down.${said}`, ...flags });
  }
  return outcome("failed", { content: `Stopped: it did not end within ${seconds} seconds.${said}`, ...flags });
}

/** Why a call is refused that a previous instance of this replica had begun. */
export function interrupted(tool: string): string {
  return `the tool-runner was restarted while ${tool} ran; whether it took effect is unknown, and it was not started again`;
}

/** As the model will see it, cut to the room the caller has for it. */
export function resultOf(
  request: ToolCallRequest,
  { content, isError, untrusted, attachments, kept, isolation }: ToolOutput,
): ToolResult {
  const result: ToolResult = {
    type: "tool_result",
    id: request.callId,
    name: request.tool,
    content: "",
    isError,
    ...(untrusted === undefined ? {} : { untrusted }),
    ...(attachments === undefined ? {} : { attachments }),
    ...(kept === undefined ? {} : { kept }),
    ...(isolation === undefined ? {} : { isolation }),
  };
  const frameBytes = Buffer.byteLength(JSON.stringify(result));
  result.content = fitWarned(content, request.maxResultBytes - frameBytes);
  return result;
}

/** Cut in the middle, it may have lost the warning over what is left: that stands above it then. */
function fitWarned(content: string, maxJsonBytes: number): string {
  const fitted = fitContent(content, maxJsonBytes);
  if (!isUnderWarning(content) || isUnderWarning(fitted)) return fitted;
  return `${untrustedMark}\n${fitContent(content, maxJsonBytes - untrustedMark.length - 2)}`;
}

/** What the store has settled. */
export function answerOf(step: ToolStep): CallAnswer {
  const { state, result } = step;
  if (result === null || state === "intended" || state === "running") {
    throw new WireError(
      "INTERNAL",
      `the store calls step ${callToken(step.turnId, step.n)} ${state} and has no result`,
    );
  }
  return { state, result };
}
