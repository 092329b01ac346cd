// Calls of Slack's Web API over fetch, with parsed responses. It reports the response, or how far a request got; callers decide what that
// means for a message. Tokens are in headers only, and error codes are the only text of a response that leaves this file.
import { z } from "zod";
import { parseJson, requestFailure, type RequestFailure } from "../transport.ts";

/** The result of a call. `unreached`: certainly not executed. `lost`: sent, but no readable response arrived. */
export type Answer<Result> =
  | { kind: "ok"; result: Result }
  /** `error`: Slack's error code, or the HTTP status. */
  | { kind: "refused"; error: string; status: number; retryAfterMs: number | null }
  | RequestFailure;

export type Call = <Result>(
  method: string,
  parameters: Record<string, unknown>,
  result: z.ZodType<Result>,
  signal: AbortSignal,
) => Promise<Answer<Result>>;

export interface ApiOptions {
  apiRoot: string;
  token: string;
  fetch: () => typeof fetch;
}

const Refusal = z.object({ ok: z.literal(false), error: z.string().regex(/^[\w.:-]{1,100}$/) });

export function createCall({ apiRoot, token, fetch }: ApiOptions): Call {
  const root = apiRoot.replace(/\/+$/, "");
  return async (method, parameters, result, signal) => {
    if (signal.aborted) return { kind: "unreached", reason: "cancelled before it was sent" };
    let response: Response;
    let body: string;
    try {
      response = await fetch()(`${root}/api/${method}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/x-www-form-urlencoded" },
        body: formOf(parameters),
        redirect: "manual",
        signal,
      });
      body = await response.text();
    } catch (error) {
      return requestFailure(error, signal);
    }
    const { status } = response;
    const json = parseJson(body);
    const refusal = Refusal.safeParse(json);
    if (status !== 200 || refusal.success) {
      const error = refusal.data?.error ?? (status === 429 ? "ratelimited" : `HTTP ${status}`);
      return { kind: "refused", error, status, retryAfterMs: retryAfterMs(response.headers.get("retry-after")) };
    }
    const parsed = z.object({ ok: z.literal(true) }).safeParse(json).success ? result.safeParse(json) : undefined;
    if (parsed?.success === true) return { kind: "ok", result: parsed.data };
    return { kind: "lost", reason: `unreadable response to ${method}` };
  };
}

/** Every method accepts forms; some accept no JSON. Objects are JSON texts in it. */
function formOf(parameters: Record<string, unknown>): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return form.toString();
}

/** Slack sends whole seconds; null for anything else. */
function retryAfterMs(header: string | null): number | null {
  return header !== null && /^\d{1,6}$/.test(header) ? Number(header) * 1_000 : null;
}

/** Error codes of a token that is missing, wrong, revoked or has too few rights. */
const credentialErrors: Readonly<Record<string, string>> = {
  not_authed: "no token was sent",
  invalid_auth: "the token is wrong",
  account_inactive: "the app was removed from the workspace",
  token_revoked: "the token was revoked",
  token_expired: "the token has expired",
  not_allowed_token_type: "it is another kind of token: token_env begins with xoxb-, app_token_env with xapp-",
  missing_scope: "a scope is missing: add it under OAuth & Permissions and install the app again",
  org_login_required: "the workspace is being moved",
  team_access_not_granted: "the app has no access to the workspace",
  access_denied: "the app has no access",
};

/** The reason when Slack refuses the credentials; null for other errors. */
export function credentialProblem(error: string): string | null {
  const reason = credentialErrors[error];
  return reason === undefined ? null : `Slack refuses the credentials: ${reason} (${error})`;
}

export const AuthTest = z.object({
  user_id: z.string(),
  user: z.string().default(""),
  team: z.string().default(""),
  bot_id: z.string().optional(),
});
/** The app as Slack identifies it. */
export type Me = z.infer<typeof AuthTest>;
