// Requests to the Graph API. The token is only in a header.
import { z } from "zod";
import { download, DownloadFailedError, isHostedBy } from "../download.ts";
import { createCallApi, rootOf, type Answer, type CallApi, type Problem } from "../json-api.ts";

const GraphError = z.object({
  error: z.object({
    code: z.number().int(),
    message: z.string().default(""),
    error_data: z.object({ details: z.string().optional() }).optional(),
  }),
});

const Media = z.object({ url: z.url(), file_size: z.coerce.number().nonnegative().optional() });

export interface GraphOptions {
  apiRoot: string;
  version: string;
  phoneNumberId: string;
  token: string;
}

/** Hosts that media addresses may have, in addition to that of the API; the token is sent there. */
const mediaHosts = /(?:^|\.)(?:fbsbx\.com|fbcdn\.net|whatsapp\.net|facebook\.com)$/;

/** The code of a refusal is that of the Graph API, or 0. */
export class Graph {
  readonly #options: GraphOptions;
  readonly #root: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #call: CallApi;

  constructor(options: GraphOptions) {
    const { apiRoot, version, token } = options;
    this.#options = options;
    this.#root = `${rootOf(apiRoot)}/${version}`;
    this.#headers = { authorization: `Bearer ${token}` };
    this.#call = createCallApi({ headers: this.#headers, token, problemOf });
  }

  /** Posts to an edge of the phone number. */
  async post<Result>(
    edge: "messages" | "media",
    content: object | FormData,
    result: z.ZodType<Result>,
    signal: AbortSignal,
  ): Promise<Answer<Result>> {
    const url = `${this.#root}/${this.#options.phoneNumberId}/${edge}`;
    const sent = content instanceof FormData ? { body: content } : { json: content };
    return this.#call({ method: "POST", url, ...sent }, result, signal);
  }

  /** The fields of the phone number. */
  number<Result>(fields: readonly string[], result: z.ZodType<Result>, signal: AbortSignal): Promise<Answer<Result>> {
    return this.#get(`${this.#options.phoneNumberId}?fields=${fields.join(",")}`, result, signal);
  }

  /** Downloads media by its id. Rejects with a DownloadFailedError. */
  async download(id: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array | "too_large"> {
    // An address ends after five minutes; a second one is requested when the first has ended.
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#get(`${id}?phone_number_id=${this.#options.phoneNumberId}`, Media, signal);
      if (answer.kind !== "ok") {
        const what = answer.kind === "refused" ? "refused" : "not found";
        throw new DownloadFailedError(`the media was ${what}: ${answer.reason}`);
      }
      const { url, file_size: size = 0 } = answer.result;
      if (!isHostedBy(url, this.#root, mediaHosts)) {
        throw new DownloadFailedError("the media address is not one of the platform");
      }
      if (size > maxBytes) return "too_large";
      try {
        return await download({ url, headers: this.#headers, maxBytes, signal });
      } catch (error) {
        const hasEnded = error instanceof DownloadFailedError && error.status !== null;
        if (!hasEnded || attempt > 1) throw error;
      }
    }
  }

  #get<Result>(path: string, result: z.ZodType<Result>, signal: AbortSignal): Promise<Answer<Result>> {
    return this.#call({ method: "GET", url: `${this.#root}/${path}` }, result, signal);
  }
}

function problemOf(json: unknown, { ok }: Response): Problem | null {
  if (ok) return null;
  const { error } = GraphError.safeParse(json).data ?? {};
  if (error === undefined) return { code: "0" };
  return { code: String(error.code), reason: [error.message, error.error_data?.details].filter(Boolean).join(": ") };
}
