// Calls of the Bot API. Every URL contains the token.
import { z } from "zod";
import { createCallApi, formOf, type Answer } from "../json-api.ts";

const Hints = z.object({ retry_after: z.number().nonnegative().optional(), migrate_to_chat_id: z.number().optional() });
const ErrorResponse = z
  .object({ description: z.string().default(""), parameters: Hints.default({}) })
  .catch({ description: "", parameters: {} });

export type Call = ReturnType<typeof createCall>;

/** Calls below `root`. The code of a refusal is the new id of a group that became a supergroup. `files`: to upload, by the name of their parameter. */
export function createCall(root: string, token: string) {
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
  return async <Result>(
    method: string,
    parameters: Record<string, unknown>,
    result: z.ZodType<Result>,
    signal: AbortSignal,
    files?: Parameters<typeof formOf>[1],
  ): Promise<Answer<Result>> => {
    const content = files === undefined ? { json: parameters } : { body: formOf(parameters, files) };
    const envelope = z.object({ ok: z.literal(true), result }).transform((sent) => sent.result);
    return callApi({ method: "POST", url: `${root}/${method}`, ...content }, envelope, signal);
  };
}
