// Derives from a failed use of an MCP server the state of the server and the text for the model. Pure.
import { UnauthorizedError } from "@modelcontextprotocol/client";
import { errorText, isInvalidResponse, isClosed, isServerError, isTimeout, requiredUrls } from "./errors.ts";
import { SamplingRefused } from "./sampling.ts";

export type UseFailure =
  /** The server responds; `well`: its response was valid. */
  | { server: "lives"; well: boolean; text: string }
  /** The server may have stopped responding. */
  | { server: "doubtful"; text: string }
  /** The connection is unusable; `reason` is for closing it. */
  | { server: "gone"; reason: string; text: string };

export interface FailedUse {
  server: string;
  error: unknown;
  /** The caller aborted the use. */
  aborted: boolean;
  /** Text about the progress of the use. */
  soFar: string;
  /** Why the connection is closed; undefined if it is open. */
  closed: string | undefined;
  /** The link for a person's consent, if required. */
  consentLink: string | undefined;
  /** The server is restarted automatically. */
  restarts: boolean;
}

export function useFailure(use: FailedUse): UseFailure {
  const { error } = use;
  const name = `The MCP server ${use.server}`;
  if (use.aborted) return { server: "doubtful", text: use.soFar };
  if (isTimeout(error)) return { server: "doubtful", text: `${name} did not respond in time. ${use.soFar}` };
  const wanted = requiredUrls(error);
  if (wanted !== undefined) {
    const text = `${name} did nothing yet. Ask the user to open this link, then try again: ${wanted}`;
    return { server: "lives", well: true, text };
  }
  if (error instanceof SamplingRefused) {
    const text = `${name} stopped because its sampling request was refused: ${error.reason}.`;
    return { server: "lives", well: true, text };
  }
  if (isServerError(error))
    return { server: "lives", well: true, text: `${name} returned an error: ${errorText(error)}` };
  if (isInvalidResponse(error)) {
    const text = `${name} handled the call, but its response is invalid: ${errorText(error)}`;
    return { server: "lives", well: false, text };
  }
  if (error instanceof UnauthorizedError && use.consentLink !== undefined) {
    const text = `${name} no longer accepts the agent's authorization. Ask the user to open this link, then try again: ${use.consentLink}`;
    return { server: "gone", reason: "it no longer accepts our authorization", text };
  }
  const reason = isClosed(error) ? (use.closed ?? errorText(error)) : errorText(error);
  const next = use.restarts ? " The server is being restarted." : "";
  const text = `${name} failed during the call: ${reason}. Whether the call took effect is unknown; check before you repeat it.${next}`;
  return { server: "gone", reason, text };
}
