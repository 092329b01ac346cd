// The OAuth provider of one server for the library's flow: authorization code with PKCE, its link shown to a person. Tokens, the
// registered client and pending links are in the vault, so any replica can finish a flow that another one began.
import { createHash, randomBytes } from "node:crypto";
import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { sealedCodeContext, type McpClient } from "@parley/contracts";
import { createSealingKeys, omitUndefined, open } from "@parley/kit";
import { z } from "zod";
import type { SigningKey } from "./signing-key.ts";
import type { TokenStore } from "./token-store.ts";

/** The identity provider for cross-app access. */
export interface IdentityPlan {
  tokenUrl: string;
  clientId: string;
  clientSecret: string | undefined;
  tokenFile: string;
}

export interface OAuthPlan {
  grant: "authorization_code" | "client_credentials" | "cross_app_access";
  clientId: string | undefined;
  clientSecret: string | undefined;
  /** Replaces the client secret. */
  signingKey: SigningKey | undefined;
  identity: IdentityPlan | undefined;
  scope: string | undefined;
  issuer: string | undefined;
  /** Our OAuth client metadata. */
  client: McpClient;
}

/** A server as far as its authorization is concerned. */
export interface OAuthServer {
  name: string;
  reach: { kind: "stdio" } | { kind: "http"; url: URL; oauth: OAuthPlan | null };
}

/** Lifetime of a link. */
const linkMs = 15 * 60_000;
/** Minimum remaining lifetime of a link when it is shown. */
const freshMs = 5 * 60_000;

// The vault authenticates its content, so these values have the type that this code stored.
const Tokens = z.custom<StoredOAuthTokens>((value) => typeof value === "object" && value !== null);
const ClientInformation = z.custom<StoredOAuthClientInformation>(
  (value) => typeof value === "object" && value !== null,
);
const Begun = z.object({
  verifier: z.string(),
  /** Opens the code of this link. */
  keys: z.object({ publicKey: z.string(), privateKey: z.string() }),
  discovery: z.custom<OAuthDiscoveryState>((value) => typeof value === "object" && value !== null).nullable(),
  createdAtMs: z.number(),
});
type Begun = z.infer<typeof Begun>;

export class ConsentProvider implements OAuthClientProvider {
  /** Undefined: there is no such document, and the library registers the client. */
  readonly clientMetadataUrl?: string;
  readonly #server: string;
  readonly #plan: OAuthPlan;
  readonly #vault: TokenStore;
  #state = "";
  #begun: Begun = { verifier: "", keys: { publicKey: "", privateKey: "" }, discovery: null, createdAtMs: 0 };
  #link: string | undefined;
  /** The last access token read: another replica may since have stored a new one. */
  #used: string | undefined;

  constructor(server: string, plan: OAuthPlan, vault: TokenStore) {
    this.#server = server;
    this.#plan = plan;
    this.#vault = vault;
    if (plan.client.metadataUrl !== null) this.clientMetadataUrl = plan.client.metadataUrl;
  }

  /** The link that a person must open; undefined if none was created. */
  get link(): string | undefined {
    return this.#link;
  }

  get expired(): boolean {
    return Date.now() - this.#begun.createdAtMs > linkMs - freshMs;
  }

  /** Resumes a flow that this or another replica began. False when the link is unknown, expired or already used. */
  async resume(state: string): Promise<boolean> {
    const name = this.#linkName(state);
    const begun = Begun.safeParse(await this.#vault.get(name));
    if (!(await this.#vault.remove(name)) || !begun.success) return false;
    if (Date.now() - begun.data.createdAtMs > linkMs) return false;
    this.#begun = begun.data;
    return true;
  }

  get redirectUrl(): string {
    return this.#plan.client.redirectUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    return this.#plan.client.metadata;
  }

  /** Contains a public key of this link only: the code returns by the bus, where others may read it. */
  state(): string {
    const keys = createSealingKeys();
    this.#begun = { ...this.#begun, keys };
    this.#state = `${randomBytes(32).toString("base64url")}.${keys.publicKey}`;
    return this.#state;
  }

  /** The authorization code; undefined when it was not sealed for this link. After `resume`. */
  openCode(sealed: string, state: string): string | undefined {
    return open(sealed, this.#begun.keys, sealedCodeContext({ server: this.#server, state }));
  }

  async clientInformation(): Promise<StoredOAuthClientInformation | undefined> {
    const { clientId, clientSecret, issuer } = this.#plan;
    if (clientId === undefined) return ClientInformation.optional().parse(await this.#vault.get(this.#name("client")));
    return {
      client_id: clientId,
      ...omitUndefined({ client_secret: clientSecret, issuer }),
    };
  }

  async saveClientInformation(information: StoredOAuthClientInformation): Promise<void> {
    await this.#vault.put(this.#name("client"), information);
  }

  async tokens(): Promise<StoredOAuthTokens | undefined> {
    const tokens = Tokens.optional().parse(await this.#vault.get(this.#name("tokens")));
    this.#used = tokens?.access_token;
    return tokens;
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    this.#link = undefined;
    await this.#vault.put(this.#name("tokens"), tokens);
  }

  /** Called before any request to the authorization server. Throws if it is not the configured one. */
  saveDiscoveryState(discovery: OAuthDiscoveryState): void {
    const problem = this.#plan.issuer === undefined ? undefined : issuerProblem(this.#plan.issuer, discovery);
    if (problem !== undefined) throw new Error(problem);
    this.#begun = { ...this.#begun, discovery };
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#begun.discovery ?? undefined;
  }

  saveCodeVerifier(verifier: string): void {
    this.#begun = { ...this.#begun, verifier };
  }

  codeVerifier(): string {
    return this.#begun.verifier;
  }

  /** There is no browser to redirect: stores the link, which callers show to a person. */
  async redirectToAuthorization(url: URL): Promise<void> {
    this.#begun = { ...this.#begun, createdAtMs: Date.now() };
    await this.#vault.put(this.#linkName(this.#state), this.#begun);
    this.#link = url.href;
  }

  async invalidateCredentials(scope: "all" | "client" | "tokens" | "verifier" | "discovery"): Promise<void> {
    if (scope === "all" || scope === "client") await this.#vault.remove(this.#name("client"));
    if (scope === "all" || scope === "discovery") this.#begun = { ...this.#begun, discovery: null };
    if (scope !== "all" && scope !== "tokens") return;
    const kept = Tokens.optional().parse(await this.#vault.get(this.#name("tokens")));
    if (kept !== undefined && kept.access_token === this.#used) await this.#vault.remove(this.#name("tokens"));
  }

  #name(what: "client" | "tokens"): string {
    return `${this.#server}.${what}`;
  }

  /** The state is a secret of the link; the file name contains its hash. */
  #linkName(state: string): string {
    return `${this.#server}.link-${createHash("sha256").update(state).digest("hex").slice(0, 32)}`;
  }
}

/**
 * Whether the library may accept metadata whose issuer differs from the URL it was fetched from, as with servers of revision
 * 2025-03-26. Only if the operator has configured the issuer: then `issuerProblem` checks instead.
 */
export function namesIssuer({ grant, issuer }: Pick<OAuthPlan, "grant" | "issuer">): boolean {
  return grant === "authorization_code" && issuer !== undefined;
}

/** Metadata are valid for an issuer if they come from its origin: nobody else controls that origin. Pure. */
export function issuerProblem(
  issuer: string,
  { authorizationServerUrl: queried, authorizationServerMetadata: metadata }: OAuthDiscoveryState,
): string | undefined {
  const discovered = metadata?.issuer ?? queried;
  if (sameAddress(discovered, issuer) && new URL(queried).origin === new URL(issuer).origin) return undefined;
  return `its authorization server is ${discovered} (queried at ${queried}), but \`oauth.issuer\` in the settings is ${issuer}`;
}

function sameAddress(a: string, b: string): boolean {
  return a.replace(/\/$/, "") === b.replace(/\/$/, "");
}
