// Classifies errors of MCP servers, and derives from a failed call the state of the server and the text for the model. Pure.
import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/client";
import type { McpServerStatus } from "@parley/contracts";
import { SamplingRefusedError } from "./sampling.ts";

/** The result of a call that waited for the server without success. */
export function notReadyText({ server, state, problem }: McpServerStatus): string {
  if (state === "off") return switchedOffText(server);
  if (state === "broken") {
    return `The MCP server ${server} keeps failing and is restarted only at long intervals: ${problem ?? ""}`;
  }
  const known = state === "restarting" ? ` Its last failure: ${problem ?? ""}` : "";
  return `The MCP server ${server} is ${state}; nothing was called. Try again later.${known}`;
}

export function switchedOffText(server: string): string {
  return `The MCP server ${server} is switched off; nothing was called. Only the owner can switch it on: /mcp on ${server}.`;
}

export type CallFailure =
  /** The server responds; `well`: its response was valid. */
  | { server: "lives"; well: boolean; text: string }
  /** The server may have stopped responding. */
  | { server: "doubtful"; text: string }
  /** The connection is unusable; `reason` is for closing it. */
  | { server: "gone"; reason: string; text: string };

export interface FailedCall {
  server: string;
  error: unknown;
  /** The caller aborted the call. */
  aborted: boolean;
  /** Text about the progress of the call. */
  soFar: string;
  /** Why the connection is closed; undefined if it is open. */
  closed: string | undefined;
  /** The link for a person's consent, if required. */
  consentLink: string | undefined;
  /** The server is restarted automatically. */
  restarts: boolean;
}

export function callFailure(call: FailedCall): CallFailure {
  const { error } = call;
  const name = `The MCP server ${call.server}`;
  if (call.aborted) return { server: "doubtful", text: call.soFar };
  if (isTimeout(error)) return { server: "doubtful", text: `${name} did not respond in time. ${call.soFar}` };
  const wanted = requiredUrls(error);
  if (wanted !== undefined) {
    const text = `${name} did nothing yet. Ask the user to open this link, then try again: ${wanted}`;
    return { server: "lives", well: true, text };
  }
  if (error instanceof SamplingRefusedError) {
    const text = `${name} stopped because its sampling request was refused: ${error.reason}.`;
    return { server: "lives", well: true, text };
  }
  if (isServerError(error))
    return { server: "lives", well: true, text: `${name} returned an error: ${errorText(error)}` };
  if (isInvalidResponse(error)) {
    const text = `${name} handled the call, but its response is invalid: ${errorText(error)}`;
    return { server: "lives", well: false, text };
  }
  if (error instanceof UnauthorizedError && call.consentLink !== undefined) {
    const text = `${name} no longer accepts the agent's authorization. Ask the user to open this link, then try again: ${call.consentLink}`;
    return { server: "gone", reason: "it no longer accepts our authorization", text };
  }
  const reason = isClosed(error) ? (call.closed ?? errorText(error)) : errorText(error);
  const next = call.restarts ? " The server is being restarted." : "";
  const text = `${name} failed during the call: ${reason}. Whether the call took effect is unknown; check before you repeat it.${next}`;
  return { server: "gone", reason, text };
}

export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // `fetch` gives the reason only in its cause.
  const cause = error.cause instanceof Error && !error.message.includes(error.cause.message) ? error.cause.message : "";
  return cause === "" ? error.message : `${error.message}: ${cause}`;
}

/** The server responded with an error: it is working. */
function isServerError(error: unknown): boolean {
  return ProtocolError.isInstance(error);
}

/** The links that a person must open before the server continues; undefined for other errors. */
function requiredUrls(error: unknown): string | undefined {
  if (!UrlElicitationRequiredError.isInstance(error)) return undefined;
  return error.elicitations.map(({ message, url }) => `${url} (${message.slice(0, 300)})`).join(", ");
}

export function isClosed(error: unknown): boolean {
  return (
    SdkError.isInstance(error) &&
    (error.code === SdkErrorCode.ConnectionClosed || error.code === SdkErrorCode.NotConnected)
  );
}

export function isTimeout(error: unknown): boolean {
  return SdkError.isInstance(error) && error.code === SdkErrorCode.RequestTimeout;
}

/** The response does not match the protocol or the tool's own schema. */
function isInvalidResponse(error: unknown): boolean {
  return (
    SdkError.isInstance(error) &&
    (error.code === SdkErrorCode.InvalidResult || error.code === SdkErrorCode.UnsupportedResultType)
  );
}

/**
 * An HTTP server rejected the request, most likely because our session has expired: 404 as the protocol specifies, 400 as
 * some servers send.
 */
export function isSessionExpired(error: unknown): boolean {
  return SdkHttpError.isInstance(error) && (error.status === 404 || error.status === 400);
}
