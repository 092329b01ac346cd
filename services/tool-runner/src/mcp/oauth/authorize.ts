// Serves `mcp.authorize`, the OAuth redirect from an authorization server. Any replica can finish a flow that another one began.
import { auth } from "@modelcontextprotocol/client";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { mcpAuthorize, mcpAuthorized, type InputOf, type OutputOf } from "@parley/contracts";
import { ConsentProvider, namesIssuer, type OAuthServer } from "./provider.ts";
import type { TokenStore } from "./token-store.ts";

export interface AuthorizeDeps {
  bus: Pick<Bus, "serve" | "publish" | "subscribe">;
  log: Logger;
  plans: readonly OAuthServer[];
  /** Null without a key; then no server uses consent. */
  vault: TokenStore | null;
  /** Called when new tokens for a server are stored. */
  authorized(server: string): void;
}

export function serveAuthorize(deps: AuthorizeDeps): { close(): void } {
  const served = deps.bus.serve(mcpAuthorize, async (input) => {
    const answer = await finish(deps, input);
    deps.log.info({ mcp: input.server, outcome: answer.outcome }, "MCP consent processed");
    if (answer.outcome === "done") {
      deps.authorized(input.server);
      deps.bus.publish(mcpAuthorized, { server: input.server });
    }
    return answer;
  });
  const subscription = deps.bus.subscribe(mcpAuthorized, {}, ({ server }) => deps.authorized(server));
  return {
    close: () => {
      served.close();
      subscription.close();
    },
  };
}

/** Exchanges the authorization code of a link that this or another replica created. */
export async function finish(
  { plans, vault, log }: Pick<AuthorizeDeps, "plans" | "vault" | "log">,
  { server, state, sealedCode, error, issuer }: InputOf<typeof mcpAuthorize>,
): Promise<OutputOf<typeof mcpAuthorize>> {
  const reach = plans.find(({ name }) => name === server)?.reach;
  if (vault === null || reach?.kind !== "http" || reach.oauth?.grant !== "authorization_code") {
    return { outcome: "unknown_link", message: `No MCP server "${server}" uses consent.` };
  }
  const provider = new ConsentProvider(server, reach.oauth, vault);
  if (!(await provider.resume(state))) {
    return {
      outcome: "unknown_link",
      message: "This link is unknown, expired or already used. Request a new one.",
    };
  }
  if (error !== null || sealedCode === null) {
    return {
      outcome: "refused",
      message: `Access to ${server} was not granted: ${error ?? "no authorization code received"}.`,
    };
  }
  const code = provider.openCode(sealedCode, state);
  if (code === undefined) {
    return { outcome: "failed", message: "The authorization code was not sealed for this link. Request a new one." };
  }
  try {
    await auth(provider, {
      serverUrl: reach.url,
      authorizationCode: code,
      skipIssuerMetadataValidation: namesIssuer(reach.oauth),
      ...(issuer === null ? {} : { iss: issuer }),
    });
  } catch (failure) {
    log.warn({ err: failure, mcp: server }, "MCP authorization code not exchanged");
    return { outcome: "failed", message: `${server} did not issue a token for this code. Request a new link.` };
  }
  return { outcome: "done", message: `The agent may now use ${server}.` };
}
