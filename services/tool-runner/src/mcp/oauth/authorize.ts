// Serves `mcp.authorize`: the way back from an authorization server. Any replica finishes what any replica has begun.
import { auth } from "@modelcontextprotocol/client";
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { mcpAuthorize, mcpAuthorized, type InputOf, type OutputOf } from "@parley/contracts";
import type { McpServerPlan } from "../plan.ts";
import { ConsentProvider, namesIssuer } from "./provider.ts";
import type { Vault } from "./vault.ts";

export interface AuthorizeDeps {
  bus: Pick<Bus, "serve" | "publish" | "subscribe">;
  log: Logger;
  plans: readonly McpServerPlan[];
  /** Null: there is no key, and so no server that asks for consent. */
  vault: Vault | null;
  /** There are new tokens for this server. */
  authorized(server: string): void;
}

export function serveAuthorize(deps: AuthorizeDeps): { close(): void } {
  const served = deps.bus.serve(mcpAuthorize, async (input) => {
    const answer = await finish(deps, input);
    deps.log.info({ mcp: input.server, outcome: answer.outcome }, "consent for an MCP server");
    if (answer.outcome === "done") {
      deps.authorized(input.server);
      deps.bus.publish(mcpAuthorized, { server: input.server });
    }
    return answer;
  });
  const heard = deps.bus.subscribe(mcpAuthorized, {}, ({ server }) => deps.authorized(server));
  return {
    close: () => {
      served.close();
      heard.close();
    },
  };
}

/** Exchanges the code of a link that this or another replica made. */
export async function finish(
  { plans, vault, log }: Pick<AuthorizeDeps, "plans" | "vault" | "log">,
  { server, state, code, error, issuer }: InputOf<typeof mcpAuthorize>,
): Promise<OutputOf<typeof mcpAuthorize>> {
  const reach = plans.find(({ name }) => name === server)?.reach;
  if (vault === null || reach?.kind !== "http" || reach.oauth?.grant !== "authorization_code") {
    return { outcome: "unknown_link", message: `There is no server "${server}" that asks for consent.` };
  }
  const provider = new ConsentProvider(server, reach.oauth, vault);
  if (!(await provider.resume(state))) {
    return {
      outcome: "unknown_link",
      message: "This link is not known, was used already, or is too old. Ask for a new one.",
    };
  }
  if (error !== null || code === null) {
    return { outcome: "refused", message: `${server} was not allowed: ${error ?? "no code came back"}.` };
  }
  try {
    await auth(provider, {
      serverUrl: reach.url,
      authorizationCode: code,
      skipIssuerMetadataValidation: namesIssuer(reach.oauth),
      ...(issuer === null ? {} : { iss: issuer }),
    });
  } catch (failure) {
    log.warn({ err: failure, mcp: server }, "a code could not be exchanged");
    return { outcome: "failed", message: `${server} did not give a token for this code. Ask for a new link.` };
  }
  return { outcome: "done", message: `The agent may use ${server} now.` };
}
