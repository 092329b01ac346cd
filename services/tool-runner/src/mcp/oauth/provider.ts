// What the library's OAuth flow is told and what it tells us, for one server: authorization code with PKCE, its link shown to a person.
// Tokens, the registered client and the open links are in the vault, so any replica can finish what another one began.
import { createHash, randomBytes } from "node:crypto";
import type {
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from "@modelcontextprotocol/client";
import { z } from "zod";
import type { OAuthPlan } from "../plan.ts";
import type { Vault } from "./vault.ts";

/** How long a link is good. */
const linkMs = 15 * 60_000;
/** A link that is shown is good for at least so long. */
const freshMs = 5 * 60_000;

// The vault opens nothing that this code has not sealed, so what comes out of it is what went in.
const Tokens = z.custom<StoredOAuthTokens>((value) => typeof value === "object" && value !== null);
const ClientInformation = z.custom<StoredOAuthClientInformation>(
  (value) => typeof value === "object" && value !== null,
);
const Begun = z.object({
  verifier: z.string(),
  discovery: z.custom<OAuthDiscoveryState>((value) => typeof value === "object" && value !== null).nullable(),
  createdAtMs: z.number(),
});
type Begun = z.infer<typeof Begun>;

export class ConsentProvider implements OAuthClientProvider {
  /** Left out: there is no such document, the library registers us. */
  readonly clientMetadataUrl?: string;
  readonly #server: string;
  readonly #plan: OAuthPlan;
  readonly #vault: Vault;
  #state = "";
  #begun: Begun = { verifier: "", discovery: null, createdAtMs: 0 };
  #link: string | undefined;
  /** The tokens that were read last: another replica may have got new ones meanwhile. */
  #used: string | undefined;

  constructor(server: string, plan: OAuthPlan, vault: Vault) {
    this.#server = server;
    this.#plan = plan;
    this.#vault = vault;
    if (plan.client.metadataUrl !== null) this.clientMetadataUrl = plan.client.metadataUrl;
  }

  /** The link a person has to open; undefined: none was made. */
  get link(): string | undefined {
    return this.#link;
  }

  get expired(): boolean {
    return Date.now() - this.#begun.createdAtMs > linkMs - freshMs;
  }

  /** Goes on with a link that this or another replica made. False: there is none like it, it is too old, or it was used. */
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

  state(): string {
    this.#state = randomBytes(32).toString("base64url");
    return this.#state;
  }

  async clientInformation(): Promise<StoredOAuthClientInformation | undefined> {
    const { clientId, clientSecret, issuer } = this.#plan;
    if (clientId === undefined) return ClientInformation.optional().parse(await this.#vault.get(this.#name("client")));
    return {
      client_id: clientId,
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
      ...(issuer === undefined ? {} : { issuer }),
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

  /** Before anything is sent there. Throws for an authorization server that is not the one of the settings. */
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

  /** Nobody can be led anywhere from here: the link is kept, and shown by whoever is asked. */
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

  /** The state itself is a secret of the link: its hash names it. */
  #linkName(state: string): string {
    return `${this.#server}.link-${createHash("sha256").update(state).digest("hex").slice(0, 32)}`;
  }
}

/**
 * Whether the library may take metadata whose issuer is not the address they were asked for at, as servers of the revision 2025-03-26 have
 * it. Only where the operator has named the issuer: then `issuerProblem` looks in its place.
 */
export function namesIssuer({ grant, issuer }: Pick<OAuthPlan, "grant" | "issuer">): boolean {
  return grant === "authorization_code" && issuer !== undefined;
}

/** Metadata speak for an issuer when they come from its origin: nobody else can put them there. Pure. */
export function issuerProblem(
  issuer: string,
  { authorizationServerUrl: asked, authorizationServerMetadata: metadata }: OAuthDiscoveryState,
): string | undefined {
  const told = metadata?.issuer ?? asked;
  if (sameAddress(told, issuer) && new URL(asked).origin === new URL(issuer).origin) return undefined;
  return `its authorization server is ${told} (asked at ${asked}), and \`oauth.issuer\` in the settings wants ${issuer}`;
}

function sameAddress(a: string, b: string): boolean {
  return a.replace(/\/$/, "") === b.replace(/\/$/, "");
}
