// Calls of the Bot API over plain fetch, each answer parsed. It knows what came back or how far a request got; what that means
// for a message is decided by its callers. The token is part of every address, so no address and no error text leaves this file.
import { z } from "zod";

/** How a call ended. `unreached`: it certainly was not carried out. `lost`: it left, and no answer that can be read came. */
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

/** A file that is sent along, under the name of its parameter. */
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

/** Failures before the request could leave: nothing was connected, or the certificate was not the platform's. */
const beforeSending =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/;

export interface ApiOptions {
  apiRoot: string;
  token: string;
  fetch: () => typeof fetch;
}

export function createCall({ apiRoot, token, fetch }: ApiOptions): Call {
  const root = apiRoot.replace(/\/+$/, "");
  return async (method, parameters, result, signal, file) => {
    if (signal.aborted) return { kind: "unreached", reason: "given up before it was sent" };
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
      const reason = signal.aborted ? "no answer in time" : codeOf(error);
      return { kind: !signal.aborted && beforeSending.test(reason) ? "unreached" : "lost", reason };
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
    return { kind: "lost", reason: `an answer to ${method} that cannot be read` };
  };
}

/** With a file a form, in which everything else is text or JSON. */
async function bodyOf(parameters: Record<string, unknown>, file: FileParameter | undefined) {
  if (file === undefined) {
    return { headers: { "content-type": "application/json" }, body: JSON.stringify(parameters) };
  }
  const form = new FormData();
  for (const [name, value] of Object.entries(parameters)) {
    form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  form.append(file.parameter, new Blob([Uint8Array.from(file.content)], { type: file.mediaType }), file.name);
  // Encoded first: a form that is still being read when the request is given up fails where nobody can catch it.
  const encoded = new Response(form);
  return {
    headers: { "content-type": encoded.headers.get("content-type") ?? "" },
    body: await encoded.arrayBuffer(),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The system's name of an error. Never its message: fetch puts addresses into some. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
    if (at instanceof AggregateError && at.errors.length > 0) return codeOf(at.errors[0]);
  }
  return error instanceof Error ? error.name : "failure";
}
