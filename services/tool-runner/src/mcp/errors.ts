// What went wrong with an MCP server, in words. Pure.
import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/client";

export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // `fetch` says why only in its cause.
  const cause = error.cause instanceof Error && !error.message.includes(error.cause.message) ? error.cause.message : "";
  return cause === "" ? error.message : `${error.message}: ${cause}`;
}

/** The server has answered, with a refusal: it is well. */
export function isRefusal(error: unknown): boolean {
  return ProtocolError.isInstance(error);
}

/** The links a person has to open before the server does anything; undefined: the error is another one. */
export function linksWanted(error: unknown): string | undefined {
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

/** The answer came and was not what the protocol or the tool's own schema says. */
export function isBadAnswer(error: unknown): boolean {
  return (
    SdkError.isInstance(error) &&
    (error.code === SdkErrorCode.InvalidResult || error.code === SdkErrorCode.UnsupportedResultType)
  );
}

/**
 * An HTTP server has not taken the request, most likely because it does not know our session any more: 404 as the protocol has it, 400 as
 * some servers do.
 */
export function isForgotten(error: unknown): boolean {
  return SdkHttpError.isInstance(error) && (error.status === 404 || error.status === 400);
}
