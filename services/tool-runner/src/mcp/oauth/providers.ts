// Selects how to authorize at a server: by client credentials, by an identity provider's assertion (cross-app access), or by a
// person's consent.
import { readFile } from "node:fs/promises";
import {
  ClientCredentialsProvider,
  CrossAppAccessProvider,
  PrivateKeyJwtProvider,
  requestJwtAuthorizationGrant,
  type AssertionCallback,
  type OAuthClientProvider,
} from "@modelcontextprotocol/client";
import { omitUndefined } from "@parley/kit";
import { ConsentProvider, type IdentityPlan, type OAuthPlan, type OAuthServer } from "./provider.ts";
import type { TokenStore } from "./token-store.ts";

interface Providers {
  /** Null: the server needs none. */
  auth: OAuthClientProvider | null;
  /** The same provider if it uses a person's consent; otherwise null. */
  consent: ConsentProvider | null;
}

export function providersOf({ name, reach }: OAuthServer, vault: TokenStore | null): Providers {
  if (reach.kind !== "http" || reach.oauth === null) return { auth: null, consent: null };
  const { grant, identity } = reach.oauth;
  if (grant === "client_credentials") return { auth: ownAccount(reach.oauth), consent: null };
  if (identity !== undefined) return { auth: vouchedFor(reach.oauth, identity), consent: null };
  if (vault === null) return { auth: null, consent: null };
  const consent = new ConsentProvider(name, reach.oauth, vault);
  return { auth: consent, consent };
}

function ownAccount({ clientId = "", clientSecret = "", signingKey, scope, issuer }: OAuthPlan): OAuthClientProvider {
  const client = { clientId, ...omitUndefined({ scope, expectedIssuer: issuer }) };
  return signingKey === undefined
    ? new ClientCredentialsProvider({ ...client, clientSecret })
    : new PrivateKeyJwtProvider({ ...client, privateKey: signingKey.pem, algorithm: signingKey.algorithm });
}

function vouchedFor(
  { clientId = "", clientSecret = "", scope, issuer }: OAuthPlan,
  identity: IdentityPlan,
): OAuthClientProvider {
  const assertion = vouching(identity, scope);
  return new CrossAppAccessProvider({
    clientId,
    clientSecret,
    assertion,
    ...omitUndefined({ expectedIssuer: issuer }),
  });
}

/** Exchanges the person's ID token at the identity provider for an assertion to one authorization server. */
function vouching(
  { tokenUrl: tokenEndpoint, clientId, clientSecret, tokenFile }: IdentityPlan,
  wanted: string | undefined,
): AssertionCallback {
  return async ({ authorizationServerUrl: audience, resourceUrl: resource, scope: scopeOfRequest, fetchFn }) => {
    const idToken = (await readFile(tokenFile, "utf8")).trim();
    const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
      tokenEndpoint,
      audience,
      resource,
      idToken,
      clientId,
      fetchFn,
      ...omitUndefined({ clientSecret, scope: wanted ?? scopeOfRequest }),
    });
    return jwtAuthGrant;
  };
}
