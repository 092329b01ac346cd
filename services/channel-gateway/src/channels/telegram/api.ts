// Calls of the Bot API over fetch, with parsed responses. It reports the response, or how far a request got; callers decide what that
// means for a message. Every URL contains the token, so no URL and no error message of fetch leaves this file.
import { z } from "zod";
import { parseJson, requestFailure } from "../transport.ts";

/** The result of a call. `unreached`: certainly not executed. `lost`: sent, but no readable response arrived. */
export type Answer<Result> =
  | { kind: "ok"; result: Result }
  | { kind: "refused"; status: number; description: string; retryAfterMs: number | null; movedTo: string | null }
  | { kind: "unreached"; reason: string }
  | { kind: "lost"; reason: string };

export type Call = <Result>(
  method: string,
  parameters: Record<string, unknown>,
  result: z.ZodType<Result>,
  signal: AbortSignal,
  file?: FileParameter,
) => Promise<Answer<Result>>;

/** A file to upload, with the name of its parameter. */
interface FileParameter {
  parameter: string;
  name: string;
  mediaType: string;
  content: Uint8Array;
}

const Refusal = z.object({
  description: z.string().default(""),
  parameters: z
    .object({ retry_after: z.number().nonnegative().optional(), migrate_to_chat_id: z.number().optional() })
    .optional(),
});
const Envelope = z.object({ ok: z.literal(true), result: z.unknown() });

export interface ApiOptions {
  apiRoot: string;
  token: string;
  fetch: () => typeof fetch;
}

export function createCall({ apiRoot, token, fetch }: ApiOptions): Call {
  const root = apiRoot.replace(/\/+$/, "");
  return async (method, parameters, result, signal, file) => {
    if (signal.aborted) return { kind: "unreached", reason: "cancelled before it was sent" };
    let status: number;
    let body: string;
    try {
      const response = await fetch()(`${root}/bot${token}/${method}`, {
        method: "POST",
        ...(await bodyOf(parameters, file)),
        redirect: "manual",
        signal,
      });
      status = response.status;
      body = await response.text();
    } catch (error) {
      return requestFailure(error, signal);
    }
    const json = parseJson(body);
    if (status !== 200) {
      const { description, parameters: more } = Refusal.safeParse(json).data ?? {
        description: "",
        parameters: undefined,
      };
      return {
        kind: "refused",
        status,
        description: description.replaceAll(token, "[secret]") || `HTTP ${status}`,
        retryAfterMs: more?.retry_after === undefined ? null : more.retry_after * 1000,
        movedTo: more?.migrate_to_chat_id === undefined ? null : String(more.migrate_to_chat_id),
      };
    }
    const envelope = Envelope.safeParse(json);
    const parsed = result.safeParse(envelope.data?.result);
    if (parsed.success && envelope.success) return { kind: "ok", result: parsed.data };
    return { kind: "lost", reason: `unreadable response to ${method}` };
  };
}

/** A JSON body, or with a file a form whose other fields are text or JSON. */
async function bodyOf(parameters: Record<string, unknown>, file: FileParameter | undefined) {
  if (file === undefined) {
    return { headers: { "content-type": "application/json" }, body: JSON.stringify(parameters) };
  }
  const form = new FormData();
  for (const [name, value] of Object.entries(parameters)) {
    form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  form.append(file.parameter, new Blob([Uint8Array.from(file.content)], { type: file.mediaType }), file.name);
  // Encoded first: a form that fetch still reads during an abort causes an uncatchable rejection.
  const encoded = new Response(form);
  return {
    headers: { "content-type": encoded.headers.get("content-type") ?? "" },
    body: await encoded.arrayBuffer(),
  };
}
