// The possible outcomes of a call, and their texts for the model; pure.
import { randomUUID } from "node:crypto";
import { truncateContent } from "@parley/bus";
import {
  callToken,
  containsUntrustedContent,
  untrustedMarker,
  WireError,
  type OutputOf,
  type toolCall,
  type ToolCallRequest,
  type ToolResult,
  type ToolStep,
} from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { ToolOutput } from "../tool/tool.ts";

export type CallAnswer = OutputOf<typeof toolCall>;

/** Why a running call is stopped. */
export type Stop = "cancelled" | "deadline" | "drain";

/** The outcome of a call before it is settled. */
export interface Outcome {
  state: CallAnswer["state"];
  output: ToolOutput;
  /** Operation id of the settlement, the same for all retries. */
  opId: string;
  /** How long the tool ran, in milliseconds. Omitted: it did not run. */
  durationMs?: number;
}

export function outcome(state: Outcome["state"], output: ToolOutput): Outcome {
  return { state, output, opId: randomUUID() };
}

export function cancelled(): Outcome {
  return outcome("cancelled", { content: "Cancelled", isError: true });
}

/** The outcome of a stopped call, with the tool's last output: the model must know what a cancelled call has done. */
export function stopped(request: ToolCallRequest, stop: Stop | undefined, output: ToolOutput | undefined): Outcome {
  const seconds = Math.round(request.timeoutMs / 1_000);
  const outputText = output === undefined || output.content === "" ? "" : `\n${output.content}`;
  const flags = { isError: true, ...omitUndefined({ untrusted: output?.untrusted, isolation: output?.isolation }) };
  if (stop === "cancelled") {
    return outputText === ""
      ? cancelled()
      : outcome("cancelled", { content: `Cancelled while it ran. Its output:${outputText}`, ...flags });
  }
  if (stop === "drain") {
    return outcome("cancelled", { content: `Interrupted: the tool-runner was shut down.${outputText}`, ...flags });
  }
  return outcome("failed", {
    content: `Stopped: the tool did not finish within ${seconds} seconds.${outputText}`,
    ...flags,
  });
}

/** The error for a call that a previous instance of this replica had started. */
export function interrupted(tool: string): string {
  return `the tool-runner restarted while ${tool} ran; whether it took effect is unknown, and it was not run again`;
}

/** Space for what a tool writes around a page: its notices, and the frame of untrusted content. */
const pageFrameCharacters = 1_000;
const minPageCharacters = 500;

/**
 * Characters of a page that `resultOf` leaves whole: it cuts the middle out of a longer result, and the call for the next page would
 * skip that part. A character counts as 1.25 bytes, enough for ASCII with its escapes.
 */
export function pageCharactersFor({ maxResultBytes, maxResultCharacters = Infinity }: ToolCallRequest): number {
  const room = Math.min(maxResultCharacters, Math.floor(maxResultBytes / 1.25)) - pageFrameCharacters;
  return Math.max(minPageCharacters, room);
}

/** The result as the model sees it, truncated to the caller's limit. */
export function resultOf(
  request: ToolCallRequest,
  { output, durationMs }: Pick<Outcome, "output" | "durationMs">,
): ToolResult {
  const { content, isError, untrusted, shownAttachments: attachments, storedAttachments: kept, isolation } = output;
  const result: ToolResult = {
    type: "tool_result",
    id: request.callId,
    name: request.tool,
    content: "",
    isError,
    ...omitUndefined({ untrusted, attachments, kept, isolation, durationMs }),
  };
  const frameBytes = Buffer.byteLength(JSON.stringify(result));
  const limit = { maxCharacters: request.maxResultCharacters, tool: request.tool };
  result.content = fitWarned(content, request.maxResultBytes - frameBytes, limit);
  return result;
}

/** Truncates content. If that removed the warning about untrusted content, the warning is put on top again. */
function fitWarned(content: string, maxJsonBytes: number, limit: Parameters<typeof truncateContent>[2]): string {
  const fitted = truncateContent(content, maxJsonBytes, limit);
  if (!containsUntrustedContent(content) || containsUntrustedContent(fitted)) return fitted;
  return `${untrustedMarker}\n${truncateContent(content, maxJsonBytes - untrustedMarker.length - 2, limit)}`;
}

/** The settled result of a step. Throws INTERNAL when the step is not settled. */
export function answerOf(step: ToolStep): CallAnswer {
  const { state, result } = step;
  if (result === null || state === "intended" || state === "running") {
    throw new WireError(
      "INTERNAL",
      `the store returned step ${callToken(step.turnId, step.n)} as ${state} without a result`,
    );
  }
  return { state, result };
}
