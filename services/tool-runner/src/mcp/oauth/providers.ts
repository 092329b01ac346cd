// How a server lets us in, by its plan: with an account of the deployment's own, or by a person's consent.
import {
  ClientCredentialsProvider,
  PrivateKeyJwtProvider,
  type OAuthClientProvider,
} from "@modelcontextprotocol/client";
import type { McpServerPlan, OAuthPlan } from "../plan.ts";
import { ConsentProvider } from "./provider.ts";
import type { Vault } from "./vault.ts";

interface Providers {
  /** Null: the server wants none. */
  auth: OAuthClientProvider | null;
  /** The same where it asks a person; null: it does not. */
  consent: ConsentProvider | null;
}

export function providersOf({ name, reach }: Pick<McpServerPlan, "name" | "reach">, vault: Vault | null): Providers {
  if (reach.kind !== "http" || reach.oauth === null) return { auth: null, consent: null };
  if (reach.oauth.grant === "client_credentials") return { auth: ownAccount(reach.oauth), consent: null };
  if (vault === null) return { auth: null, consent: null };
  const consent = new ConsentProvider(name, reach.oauth, vault);
  return { auth: consent, consent };
}

function ownAccount({ clientId = "", clientSecret = "", signingKey, scope, issuer }: OAuthPlan): OAuthClientProvider {
  const client = { clientId, ...(scope === undefined ? {} : { scope }) };
  if (signingKey !== undefined) {
    const signed = { ...client, privateKey: signingKey.pem, algorithm: signingKey.algorithm };
    return issuer === undefined
      ? new PrivateKeyJwtProvider(signed)
      : new PrivateKeyJwtProvider({ ...signed, expectedIssuer: issuer });
  }
  const secret = { ...client, clientSecret };
  return issuer === undefined
    ? new ClientCredentialsProvider(secret)
    : new ClientCredentialsProvider({ ...secret, expectedIssuer: issuer });
}
