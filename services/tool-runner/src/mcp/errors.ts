// Classifies and formats errors of MCP servers. Pure.
import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/client";

export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // `fetch` gives the reason only in its cause.
  const cause = error.cause instanceof Error && !error.message.includes(error.cause.message) ? error.cause.message : "";
  return cause === "" ? error.message : `${error.message}: ${cause}`;
}

/** The server responded with an error: it is working. */
export function isServerError(error: unknown): boolean {
  return ProtocolError.isInstance(error);
}

/** The links that a person must open before the server continues; undefined for other errors. */
export function requiredUrls(error: unknown): string | undefined {
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
export function isInvalidResponse(error: unknown): boolean {
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
