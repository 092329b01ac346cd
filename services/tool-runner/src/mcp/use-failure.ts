// What a use of an MCP server that went wrong says of the server, and what the agent is told. Pure.
import { UnauthorizedError } from "@modelcontextprotocol/client";
import { errorText, isBadAnswer, isClosed, isRefusal, isTimeout, linksWanted } from "./errors.ts";
import { SamplingRefused } from "./sampling/sampling.ts";

export type UseFailure =
  /** It lives; `well`: and has said something that makes sense. */
  | { server: "lives"; well: boolean; text: string }
  /** It may have stopped answering. */
  | { server: "doubtful"; text: string }
  /** There is nothing to be had from this connection; `reason`: for whoever closes it. */
  | { server: "gone"; reason: string; text: string };

export interface FailedUse {
  server: string;
  error: unknown;
  /** The caller has given up. */
  aborted: boolean;
  /** What is known of the use so far. */
  soFar: string;
  /** Why the connection is closed; undefined: it is not. */
  closed: string | undefined;
  /** Where a person lets us in; undefined: nobody is asked. */
  consentLink: string | undefined;
  /** It is started again by itself. */
  restarts: boolean;
}

export function useFailure(use: FailedUse): UseFailure {
  const { error } = use;
  const name = `The MCP server ${use.server}`;
  if (use.aborted) return { server: "doubtful", text: use.soFar };
  if (isTimeout(error)) return { server: "doubtful", text: `${name} did not answer in time. ${use.soFar}` };
  const wanted = linksWanted(error);
  if (wanted !== undefined) {
    const text = `${name} did nothing yet. Ask the user to open this first, then try again: ${wanted}`;
    return { server: "lives", well: true, text };
  }
  if (error instanceof SamplingRefused) {
    const text = `${name} wanted a model's answer and cannot go on without: ${error.reason}.`;
    return { server: "lives", well: true, text };
  }
  if (isRefusal(error)) return { server: "lives", well: true, text: `${name} refused this: ${errorText(error)}` };
  if (isBadAnswer(error)) {
    const text = `${name} did what was asked, but its answer cannot be used: ${errorText(error)}`;
    return { server: "lives", well: false, text };
  }
  if (error instanceof UnauthorizedError && use.consentLink !== undefined) {
    const text = `${name} does not let the agent in any more. Ask the user to open this link, then try again: ${use.consentLink}`;
    return { server: "gone", reason: "it does not let us in any more", text };
  }
  const reason = isClosed(error) ? (use.closed ?? errorText(error)) : errorText(error);
  const next = use.restarts ? " The server is being started again." : "";
  const text = `${name} failed while it worked on this: ${reason}. Whether it took effect is unknown; look before you repeat it.${next}`;
  return { server: "gone", reason, text };
}
