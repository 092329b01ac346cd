// Calls of Slack's Web API. Tokens are in headers only, and error codes are the only text of a response that leaves this file.
import { z } from "zod";
import { createCallApi, rootOf, type Answer, type ApiRequest, type Problem } from "../json-api.ts";

/** The reason of a refusal is Slack's error code; for refused credentials, which have status 401, it says what is wrong. */
export type Call = <Result>(
  method: string,
  parameters: Record<string, unknown>,
  result: z.ZodType<Result>,
  signal: AbortSignal,
) => Promise<Answer<Result>>;

export interface ApiOptions {
  apiRoot: string;
  token: string;
}

const word = z.string().regex(/^[\w.:,-]{1,100}$/);
/** `needed`: the missing scope. */
const ErrorResponse = z.object({ ok: z.literal(false), error: word, needed: word.optional().catch(undefined) });
const OkResponse = z.object({ ok: z.literal(true) });

export function createCall({ apiRoot, token }: ApiOptions): Call {
  const headers = { authorization: `Bearer ${token}` };
  const callApi = createCallApi({ headers, token, problemOf });
  return (method, parameters, result, signal) => {
    const request = { method: "POST", url: `${rootOf(apiRoot)}/api/${method}`, body: formOf(parameters) };
    return callApi(request, z.intersection(OkResponse, result), signal);
  };
}

/** Slack reports most errors with status 200: the status is the one that corresponds to the error. */
function problemOf(json: unknown, { status }: Response, { url }: ApiRequest): Problem | null {
  const { error: code, needed = "" } = ErrorResponse.safeParse(json).data ?? {};
  if (code === undefined) return status === 200 ? null : { reason: status === 429 ? "ratelimited" : "" };
  const problem = credentialErrors[code];
  if (problem !== undefined) {
    const setting = url.endsWith("/apps.connections.open") ? "app_token_env" : "token_env";
    return { code, status: 401, reason: `${setting}: ${problem} (${needed === "" ? code : `${code}: ${needed}`})` };
  }
  return { code, reason: code, status: statuses[code] ?? (status === 200 ? 400 : status) };
}

const statuses: Readonly<Record<string, number>> = {
  ratelimited: 429,
  rate_limited: 429,
  service_unavailable: 503,
  // The call may have been executed.
  internal_error: 504,
  fatal_error: 504,
  request_timeout: 504,
};

/** Every method accepts forms; some accept no JSON. Objects are JSON texts in it. */
function formOf(parameters: Record<string, unknown>): URLSearchParams {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return form;
}

/** Error codes of a token that is missing, wrong, revoked or has too few rights. */
const credentialErrors: Readonly<Record<string, string>> = {
  not_authed: "no token was sent",
  invalid_auth: "the token is wrong",
  account_inactive: "the app was removed from the workspace",
  token_revoked: "the token was revoked",
  token_expired: "the token has expired",
  not_allowed_token_type: "it is another kind of token: a bot token begins with xoxb-, an app-level token with xapp-",
  missing_scope: "a scope is missing: add it under OAuth & Permissions and install the app again",
  org_login_required: "the workspace is being moved",
  team_access_not_granted: "the app has no access to the workspace",
  access_denied: "the app has no access",
};

export const AuthTest = z.object({
  user_id: z.string(),
  user: z.string().default(""),
  team: z.string().default(""),
  bot_id: z.string().optional(),
});
/** The app as Slack identifies it. */
export type Me = z.infer<typeof AuthTest>;
