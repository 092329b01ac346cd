// Calls of the Bot API. Every URL contains the token.
import { z } from "zod";
import { createCallApi, formOf, rootOf, type Answer } from "../json-api.ts";

export type Call = <Result>(
  method: string,
  parameters: Record<string, unknown>,
  result: z.ZodType<Result>,
  signal: AbortSignal,
  /** To upload, by the name of its parameter. */
  files?: Parameters<typeof formOf>[1],
) => Promise<Answer<Result>>;

const Hints = z.object({ retry_after: z.number().nonnegative().optional(), migrate_to_chat_id: z.number().optional() });
const ErrorResponse = z
  .object({ description: z.string().default(""), parameters: Hints.default({}) })
  .catch({ description: "", parameters: {} });

export interface ApiOptions {
  apiRoot: string;
  token: string;
}

/** The code of a refusal is the new id of a group that became a supergroup. */
export function createCall({ apiRoot, token }: ApiOptions): Call {
  const callApi = createCallApi({
    token,
    problemOf: (json, { status }) => {
      if (status === 200) return null;
      const { description: reason, parameters } = ErrorResponse.parse(json);
      const { retry_after: seconds, migrate_to_chat_id: movedTo } = parameters;
      return {
        reason,
        // A token that is no token is an unknown path.
        status: status === 404 ? 401 : status,
        ...(seconds === undefined ? {} : { retryAfterMs: seconds * 1_000 }),
        ...(movedTo === undefined ? {} : { code: String(movedTo) }),
      };
    },
  });
  return (method, parameters, result, signal, files) => {
    const content = files === undefined ? { json: parameters } : { body: formOf(parameters, files) };
    const envelope = z.object({ ok: z.literal(true), result }).transform((sent) => sent.result);
    return callApi({ method: "POST", url: `${rootOf(apiRoot)}/bot${token}/${method}`, ...content }, envelope, signal);
  };
}
